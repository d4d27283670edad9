// Package snapshot stores and restores the files of a git work tree. A snapshot is a git tree, which depends
// only on the files.
//
// The git program stores snapshots in uwf's own git directory in its home, [Repo.Store]. It has its own
// config, refs and indexes; the user's objects are hard-linked to it once. The user's git commands therefore
// neither see nor remove snapshots, and programs in a repository's config never start: that config isn't
// read, except for the harmless keys in [Repo.Keys]. Confined commands and agents can neither read nor write
// our git directory, so they can't make it start a program or write elsewhere through a link.
//
//   - find.go: finds the work tree of a directory, and checks it;
//   - seed.go: creates our git directory;
//   - begin.go: prepares a step; take.go: takes a snapshot; list.go: lists the snapshots of threads; git.go: runs git;
//   - objects.go: reads objects, and copies them between git directories;
//   - restore.go: replaces the files by those of a snapshot;
//   - diff.go: compares snapshots; redact.go, tidy.go: remove content from snapshots;
//   - land.go, worktree.go: change the user's own repository on request.
//
// Callers hold the lock of the thread or the work tree, which makes them the only users of their index.
package snapshot

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/united-workforce/uwf/protocol"
)

// DefaultMaxFile is the default size limit of untracked files, in bytes.
const DefaultMaxFile = 20 << 20

// Spec describes what to snapshot and where to store it. The agent that makes a step gets it in the
// environment ([protocol.EnvSnapshot]).
type Spec struct {
	Root  string `json:"root"`  // of the work tree, absolute
	Git   string `json:"git"`   // our git directory
	Index string `json:"index"` // file of the thread
	// Tree is the newest snapshot; "" if unknown.
	Tree protocol.Tree `json:"tree,omitempty"`
	// Before is the snapshot before the step, if the files were changed since the previous step.
	Before  protocol.Tree `json:"before,omitempty"`
	Ref     string        `json:"ref"`               // its last part is the thread
	MaxFile int64         `json:"maxFile,omitempty"` // size limit of untracked files in bytes; 0 means [DefaultMaxFile]
	// Partial means that the repository is a partial clone and lacks some of its objects.
	Partial bool `json:"partial,omitempty"`
	// Keys holds settings of the user's repository that affect how files are read and written.
	Keys [][2]string `json:"keys,omitempty"`
	// Skip lists paths below Root, with slashes, that are left out with their contents.
	Skip []string `json:"skip,omitempty"`
	// Outputs lists files that uwf writes its own output to, as [safeopen.Identity]; they are left out.
	Outputs []string `json:"outputs,omitempty"`
	// Redacted lists paths redacted from the snapshots; they stay out unless the user's git tracks them.
	Redacted []string `json:"redacted,omitempty"`
	// DenyRead lists paths that agents can't read. They are left out and reported unless git tracks them.
	DenyRead []string `json:"denyRead,omitempty"`
}

// ParseSpec parses the value of [protocol.EnvSnapshot]. An empty text is neither a spec nor an error.
func ParseSpec(text string) (spec Spec, ok bool, err error) {
	if text == "" {
		return Spec{}, false, nil
	}
	if err := json.Unmarshal([]byte(text), &spec); err != nil {
		return Spec{}, false, fmt.Errorf("%s: %w", protocol.EnvSnapshot, err)
	}
	if spec.Root == "" || spec.Git == "" || spec.Index == "" || spec.Ref == "" {
		return Spec{}, false, fmt.Errorf("%s: root, git, index or ref is missing", protocol.EnvSnapshot)
	}
	return spec, true, nil
}

// String returns the value of [protocol.EnvSnapshot].
func (s Spec) String() string {
	text, _ := json.Marshal(s) // encoding texts and numbers can't fail
	return string(text)
}

// Taken is a snapshot.
type Taken struct {
	Tree protocol.Tree
	Left []string // paths below the root that were left out, at most a few
	Note string   // other information for the user
}

// ErrNone means that a directory isn't in a git work tree.
var ErrNone = errors.New("not in a git work tree")

// RefusedError means that a work tree is not supported or not safe to use.
type RefusedError struct{ Dir, Reason string }

func (e *RefusedError) Error() string { return e.Dir + ": " + e.Reason }

// GitError means that a git command has failed.
type GitError struct {
	Args   []string
	Stderr string // end of its output
	Status int    // exit status; 0 if it didn't exit
	Err    error
}

func (e *GitError) Error() string {
	if e.Stderr != "" && e.Status > 0 {
		return "git " + e.Args[0] + " failed: " + strings.TrimPrefix(e.Stderr, "fatal: ")
	}
	return strings.TrimSuffix("git "+e.Args[0]+": "+e.Err.Error()+": "+e.Stderr, ": ")
}

func (e *GitError) Unwrap() error { return e.Err }
