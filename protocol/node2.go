package protocol

import (
	"errors"
	"fmt"
	"strings"
)

// What version 2 of the kinds adds.

// Child says whose child a thread is.
type Child struct {
	Of      Hash   `json:"of"` // the parent's head when it was made
	Role    string `json:"role"`
	Key     string `json:"key"`
	Attempt int    `json:"attempt"`
}

// InWorktree is the mode of a workspace that is a git worktree of the thread's own.
const InWorktree = "worktree"

// Workspace is where the agents of a thread work. Tree is the state of the files that it
// begins with.
type Workspace struct {
	Mode string `json:"mode"`
	Base Tree   `json:"base,omitempty"`
	Tree Tree   `json:"tree,omitempty"`
}

// Tree is the state of files: "sha1:" or "sha256:", and the hash of a git tree.
type Tree string

// Valid reports whether t has the form of a tree.
func (t Tree) Valid() bool {
	function, sum, _ := strings.Cut(string(t), ":")
	size := map[string]int{"sha1": 40, "sha256": 64}[function]
	return size > 0 && len(sum) == size && strings.Trim(sum, "0123456789abcdef") == ""
}

// Function is the hash function of the tree.
func (t Tree) Function() string {
	function, _, _ := strings.Cut(string(t), ":")
	return function
}

// Files is the state of the files after a step.
type Files struct {
	Tree   Tree     `json:"tree"`
	Before Tree     `json:"before,omitempty"` // if a person has changed them since the step before
	Left   []string `json:"left,omitempty"`   // paths that were left out
	Note   string   `json:"note,omitempty"`
}

// ChildEnded is a child whose result a step has joined.
type ChildEnded struct {
	Key    string `json:"key"`
	Head   Hash   `json:"head"`
	Status Status `json:"status"`
	Usage  *Usage `json:"usage,omitempty"`
}

// Try is a failed one at a step.
type Try struct {
	Agent  string `json:"agent"`
	Error  string `json:"error"`
	Detail *Hash  `json:"detail,omitempty"`
	Usage  *Usage `json:"usage,omitempty"`
	AtMs   int64  `json:"atMs"`
}

// Memo says that the output was taken over from an equal step.
type Memo struct {
	Key string `json:"key"`
	Of  *Hash  `json:"of,omitempty"`
}

// Refused is why an answer was not accepted, and how often of how many times another one has
// been asked for.
type Refused struct {
	Why    string `json:"why"`
	Number int    `json:"number"` // from 1
	Of     int    `json:"of"`
}

// String is the text for people. Why comes from an agent's answer, so it needs cleaning.
func (r Refused) String() string {
	const most = 300 // it has a line
	why := strings.Join(strings.Fields(r.Why), " ")
	if runes := []rune(why); len(runes) > most {
		why = string(runes[:most]) + "…"
	}
	return fmt.Sprintf("answer refused: %s; asked again (%d of %d)", why, r.Number, r.Of)
}

func (r *Refused) validate() error {
	if r == nil {
		return nil
	}
	return errors.Join(wantNatural("turn: refused", r.Number), wantNatural("turn: refused of", r.Of))
}

// version is that of a payload that has or has not what version 2 adds.
func version(second bool) int {
	if second {
		return 2
	}
	return 1
}

func (c *Child) validate() error {
	if c == nil {
		return nil
	}
	return errors.Join(wantHash("start: child", c.Of), wantNatural("start: attempt", c.Attempt))
}

func (w *Workspace) validate() error {
	if w == nil {
		return nil
	}
	return errors.Join(wantTree("start: base", w.Base), wantTree("start: tree", w.Tree))
}

// validateNew checks what version 2 adds.
func (s Step) validateNew() error {
	var err error
	if f := s.Files; f != nil {
		if !f.Tree.Valid() {
			err = fmt.Errorf("step: files: %q is not a tree", f.Tree)
		}
		err = errors.Join(err, wantTree("step: files before", f.Before))
	}
	for _, c := range s.Children {
		err = errors.Join(err, wantHash("step: child "+c.Key, c.Head), c.Usage.validate())
	}
	for _, t := range s.Tries {
		err = errors.Join(err, wantRef("step: detail of a try", t.Detail), t.Usage.validate())
	}
	if s.Memo != nil {
		err = errors.Join(err, wantRef("step: memo", s.Memo.Of))
	}
	return err
}

// wantTree refuses what is neither a tree nor absent.
func wantTree(field string, t Tree) error {
	if t == "" || t.Valid() {
		return nil
	}
	return fmt.Errorf("%s: %q is not a tree", field, t)
}
