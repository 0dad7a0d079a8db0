package sim_test

func runChild() bool { return false }
