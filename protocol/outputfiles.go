package protocol

// FileChanges are paths, relative to the root of the workspace.
type FileChanges struct {
	Changed []string `json:"changed,omitempty"`
	Added   []string `json:"added,omitempty"`
	Removed []string `json:"removed,omitempty"`
	Left    []string `json:"left,omitempty"` // that the step does not keep
}

// FileTotals says how much changed between two states of the files.
type FileTotals struct {
	Files   int `json:"files"` // added, changed and removed
	Added   int `json:"added"` // lines; of what is no text none
	Removed int `json:"removed"`
}

// ThreadApplied answers thread apply. Branch and commit are empty if a thread that works in
// the user's own files has gone on elsewhere: they have become those of its last step.
type ThreadApplied struct {
	Thread string `json:"thread"`
	Branch string `json:"branch"` // that has the result now
	Commit string `json:"commit"` // at which it is
	// Merged: the branch had gone on, and the commit is a merge. Already: the branch had
	// the result before.
	Merged  bool         `json:"merged"`
	Already bool         `json:"already"`
	Root    string       `json:"root,omitempty"`  // where the thread works, if that is a directory of the user's own
	Files   *FileChanges `json:"files,omitempty"` // that were written in the work tree
	Left    []string     `json:"left,omitempty"`  // paths that the result does not have: only the thread's worktree does
}

// FilesRedacted answers thread redact --files.
type FilesRedacted struct {
	Thread  string   `json:"thread"`
	Path    string   `json:"path"`
	States  int      `json:"states"`         // of the files that had it
	Also    []string `json:"also,omitempty"` // other threads of which it was kept
	Remains []string `json:"remains"`        // where content still is
}

// Worktree is one of uwf thread worktrees.
type Worktree struct {
	Path      string `json:"path"`
	Thread    string `json:"thread,omitempty"` // "": no thread has it
	Status    Status `json:"status,omitempty"` // of the thread
	Branch    string `json:"branch,omitempty"` // "": it is on none
	Base      string `json:"base,omitempty"`   // the commit that it began with
	Repo      string `json:"repo,omitempty"`   // the git directory
	CreatedAt int64  `json:"createdAt,omitempty"`
	Bytes     int64  `json:"bytes"`
	Gone      bool   `json:"gone"`            // there is none at the path any more
	Stays     string `json:"stays,omitempty"` // why it was not removed
}
