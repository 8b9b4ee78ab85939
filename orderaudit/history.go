package orderaudit

// History is a recorded run: its records in the order in which they happened. Get one from Recorder.History, Load or
// Read, or write one by hand.
type History struct {
	Records []Record

	err error // of recording or reading; Check reports it, so that half a history never passes
}
