package providertest

// CaseNames lists the cases of Run as their subtests are called.
func CaseNames() []string {
	var all []string
	for _, tc := range allCases() {
		all = append(all, tc.group()+"/"+tc.name)
	}
	return all
}
