package proc

// birth is not known.
func birth(int) string { return "" }
