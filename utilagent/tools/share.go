package tools

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// What follows is for those who serve a workspace to another program, under the
// same rules as to a model: nothing leads out of it.

// Contains tells whether a path, absolute or relative to the workspace, leads
// into it. The path need not exist.
func (w *Workspace) Contains(name string) bool {
	_, err := w.resolve(name)
	return err == nil
}

// Open opens a regular file for reading. The error is [fs.ErrNotExist] if there
// is no such file; it never is for a path that leads out.
func (w *Workspace) Open(name string) (*os.File, error) {
	f, _, err := w.open(name)
	if err == nil {
		return f, nil
	}
	if local, outside := w.resolve(name); outside == nil {
		if _, stat := w.root.Stat(local); errors.Is(stat, fs.ErrNotExist) {
			return nil, fmt.Errorf("%w: %w", fs.ErrNotExist, err)
		}
	}
	return nil, err
}

// Write makes or replaces a file, with the directories that it needs.
func (w *Workspace) Write(name, content string) error {
	_, err := w.writeFile(writeArgs{Path: name, Content: content})
	return err
}

// Temp is a directory for the temporary files of commands, removed with
// [Workspace.Close].
func (w *Workspace) Temp() (string, error) { return w.scratch.tmp() }
