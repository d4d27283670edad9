package proc

// look tells nothing.
func look(int) stat { return stat{} }
