package tools

// All is every tool of this package that works on files, programs and pages:
// those that change nothing first. A caller that allows less leaves some out
// by their [Effect]; what Commands and Fetch do not allow is off.
func All(w *Workspace, c Commands, f Fetch, s Search) []Tool {
	return []Tool{
		ReadFile(w), ListDir(w), Glob(w, s), Grep(w, s), FetchURL(w, f),
		WriteFile(w), EditFile(w), RunCommand(w, c),
	}
}
