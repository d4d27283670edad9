package rundir

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/runfiles"
)

// Intent is intent.json: what a change of a thread that needs several effects is on its way to.
// It is durable before the first file changes, and removed last. Found again, the change was
// cut off.
type Intent struct {
	Kind     IntentKind    `json:"kind"`
	HeadFrom protocol.Hash `json:"headFrom"`
	HeadTo   protocol.Hash `json:"headTo,omitempty"` // of a move
	// TreeFrom are the files before the change, and TreeTo those after it; "": they stay as they are.
	TreeFrom protocol.Tree `json:"treeFrom,omitempty"`
	TreeTo   protocol.Tree `json:"treeTo,omitempty"`
	// What a move changes of the facts.
	Undone    []protocol.Hash `json:"undone,omitempty"`
	Attempts  map[string]int  `json:"attempts,omitempty"`
	KeepFiles bool            `json:"keepFiles,omitempty"`
}

// IntentKind is what an intent is about.
type IntentKind string

// The kinds of intent.
const (
	Moving   IntentKind = "moving"   // head and files are on their way to another step
	Prepared IntentKind = "prepared" // the files are laid out for a step that does not exist yet
)

const maxIntent = 1 << 20

// Intent reads the intent; the zero value: there is none. One that an older program left as
// restore.json counts as prepared: it says only which files were being put back. Errors: it
// cannot be read, so nobody knows which files the thread has.
func (d Dir) Intent() (Intent, error) {
	var i Intent
	data, err := d.ReadFile(runfiles.IntentFile, maxIntent)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return d.cutRestore()
	case err == nil && (json.Unmarshal(data, &i) != nil || i.Kind == ""):
		err = errors.New("it is damaged")
	}
	if err != nil {
		return i, fmt.Errorf("read %s: %w", d.File(runfiles.IntentFile), err)
	}
	return i, nil
}

// cutRestore reads the record of a restore that an older program was killed in. The plan of a
// worktree is in a file of the same name, and names its repository.
func (d Dir) cutRestore() (Intent, error) {
	data, err := d.ReadFile(runfiles.RestoreFile, maxIntent)
	if errors.Is(err, fs.ErrNotExist) {
		return Intent{}, nil
	}
	var cut struct {
		From, To protocol.Tree
		Repo     string
	}
	if err == nil {
		err = json.Unmarshal(data, &cut)
	}
	if err != nil || cut.Repo != "" {
		return Intent{}, nil //nolint:nilerr // whoever opens the files says what is wrong with it
	}
	return Intent{Kind: Prepared, TreeFrom: cut.From, TreeTo: cut.To}, nil
}

// CutOff reports whether there is an intent. It costs two looks where there is none.
func (d Dir) CutOff() bool {
	_, none := os.Lstat(d.File(runfiles.IntentFile))
	_, old := os.Lstat(d.File(runfiles.RestoreFile))
	if none != nil && old != nil {
		return false
	}
	i, err := d.Intent()
	return err != nil || i.Kind != ""
}

// SetIntent makes an intent durable.
func (d Dir) SetIntent(i Intent) error {
	data, err := json.Marshal(i)
	if err == nil {
		err = d.Make()
	}
	if err == nil {
		err = d.free(runfiles.IntentFile)
	}
	if err == nil {
		err = durable.WriteFile(d.FS, d.File(runfiles.IntentFile), data, 0o600)
	}
	if err != nil {
		return fmt.Errorf("record what is about to change: %w", err)
	}
	return nil
}

// DropIntent removes the intent, and what an older program has left of one.
func (d Dir) DropIntent() error {
	names := []string{runfiles.IntentFile}
	if cut, _ := d.cutRestore(); cut.Kind != "" {
		names = append(names, runfiles.RestoreFile)
	}
	for _, name := range names {
		if _, err := os.Lstat(d.File(name)); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := d.FS.Remove(d.File(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
