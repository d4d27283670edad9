package tools

// All returns every tool of this package that works on files and programs, first those that
// change nothing. A caller that allows less filters them by [Effect]; what Commands do not
// allow is off.
func All(w *Workspace, c Commands, s Search) []Tool {
	return []Tool{
		ReadFile(w), ListDir(w), Glob(w, s), Grep(w, s),
		WriteFile(w), EditFile(w), RunCommand(w, c),
	}
}
