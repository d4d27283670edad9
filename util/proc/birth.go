package proc

// Birth tells a process from another that gets the same id after it has ended. It
// means nothing by itself, and is "" where the system does not tell it (only
// Linux does).
func Birth(pid int) string { return look(pid).birth }

// Lives reports whether the process with this birth has not ended. Where births are
// not known nothing is said to live.
func Lives(pid int, born string) bool {
	s := look(pid)
	return born != "" && s.birth == born && s.state != "Z" && s.state != "X"
}

// Stopped reports whether a process was stopped, as by Ctrl-Z, and does nothing
// until somebody continues it. Only Linux tells.
func Stopped(pid int) bool { return look(pid).state == "T" }

// Reused reports whether an id belongs to another process now than to the one
// with this birth. A process that has ended and whose id is free is not reused.
func Reused(pid int, was string) bool {
	now := Birth(pid)
	return was != "" && now != "" && now != was
}

// stat is what the system says about a process; empty if it is gone, or if the
// system does not tell.
type stat struct {
	state          string // Z: ended, but not waited for; T: stopped
	parent         int
	group, session int
	birth          string // "" in a text that is cut short
}
