package providertest

// ManagerCaseNames lists the cases of RunManager as their subtests are called.
func ManagerCaseNames() []string {
	var all []string
	for _, mc := range allManagerCases() {
		all = append(all, mc.guarantee+"/"+mc.name)
	}
	return all
}

// CaseNames lists the cases of Run as their subtests are called.
func CaseNames() []string {
	var all []string
	for _, tc := range allCases() {
		all = append(all, tc.group()+"/"+tc.name)
	}
	return all
}
