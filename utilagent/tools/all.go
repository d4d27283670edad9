package tools

// All is every tool of this package that works on files and programs: those that
// change nothing first. A caller that allows less leaves some out by their
// [Effect]; what Commands do not allow is off.
func All(w *Workspace, c Commands, s Search) []Tool {
	return []Tool{
		ReadFile(w), ListDir(w), Glob(w, s), Grep(w, s),
		WriteFile(w), EditFile(w), RunCommand(w, c),
	}
}
