package ibmmq_test

const childEnv = "KEYSEQ_IBMMQ_TEST_CHILD"

func child() int { return 0 }
