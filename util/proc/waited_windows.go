package proc

// Waited is the status that an exit status says.
func Waited(raw uint32) Status { return Status{Code: int(raw)} }
