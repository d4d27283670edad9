// Package snapshot keeps the states of a git work tree: a snapshot is a git tree, which
// depends on the files alone, and can be put back.
//
// The git program does all of this in our own git directory in uwf's home, [Repo.Store]. It
// has its own config, refs and indexes, and the user's objects are linked into it once. So the
// user's git commands neither see nor remove snapshots, and no program starts that a
// repository's config names: that config is not read, except for the harmless keys of
// [Repo.Keys]. Confined commands and agents can neither read nor write our git directory, so
// they cannot make it start a program, or write elsewhere through a link.
//
//   - find.go: the work tree around a directory, and what is refused;
//   - seed.go: the git directory of our own;
//   - begin.go: what precedes a step; take.go: a snapshot; git.go: git, and the commit that keeps a snapshot;
//   - objects.go: objects as git has them, and their way from one git directory to another;
//   - restore.go: put one back, whatever is killed when;
//   - diff.go: what differs between two; redact.go, tidy.go: what goes from all that is kept;
//   - land.go, worktree.go: what a person asks for in their own repository.
//
// Callers hold a lock that makes them the only one with their index: that of the
// thread, or of the work tree.
package snapshot

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/united-workforce/uwf/protocol"
)

// DefaultMaxFile is how large a file that git does not track may be to be kept.
const DefaultMaxFile = 20 << 20

// Spec says what is to be taken, and where it is kept. The agent that writes a step
// is told it in the environment ([protocol.EnvSnapshot]).
type Spec struct {
	Root  string `json:"root"`  // of the work tree, absolute
	Git   string `json:"git"`   // the git directory of our own
	Index string `json:"index"` // file of the thread
	// Tree is what the index holds; "": not known.
	Tree   protocol.Tree `json:"tree,omitempty"`
	Parent string        `json:"parent,omitempty"` // commit of the snapshot before; "": none
	// Before is the state that the step begins with, if somebody has changed the files
	// since the step before.
	Before  protocol.Tree `json:"before,omitempty"`
	Ref     string        `json:"ref"`               // moved to the new commit
	MaxFile int64         `json:"maxFile,omitempty"` // bytes of a file that is not tracked; 0: [DefaultMaxFile]
	// Partial: the repository is a partial clone, without all of its objects.
	Partial bool `json:"partial,omitempty"`
	// Keys are settings of the user's repository by which files are read and written.
	Keys [][2]string `json:"keys,omitempty"`
	// Skip are paths below Root, with slashes, that are left out with everything below them.
	Skip []string `json:"skip,omitempty"`
	// Outputs are files that uwf itself writes its output to, by [safeopen.Identity]; they are left out.
	Outputs []string `json:"outputs,omitempty"`
	// Redacted are such paths that were redacted from the snapshots; they stay out as long as the
	// user's git does not track them.
	Redacted []string `json:"redacted,omitempty"`
	// DenyRead are such paths that agents may not read: they are left out, and reported, unless git
	// tracks them.
	DenyRead []string `json:"denyRead,omitempty"`
}

// ParseSpec reads what an agent is told. "" is no spec, and no error.
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

// String is what an agent is told.
func (s Spec) String() string {
	text, _ := json.Marshal(s) // texts and numbers always encode
	return string(text)
}

// Taken is a snapshot.
type Taken struct {
	Tree   protocol.Tree
	Commit string   // that keeps it; "": there is no commit, and nothing has changed since Spec.Tree
	Left   []string // paths below the root that were left out, as far as they are told
	Note   string   // what else a person should know
}

// ErrNone means that a directory lies in no work tree of git.
var ErrNone = errors.New("not in a git work tree")

// RefusedError says why nothing is done with a work tree.
type RefusedError struct{ Dir, Reason string }

func (e *RefusedError) Error() string { return e.Dir + ": " + e.Reason }

// GitError is a git command that has failed.
type GitError struct {
	Args   []string
	Stderr string // its end
	Status int    // that it has ended with; 0: it has not come to an end
	Err    error
}

func (e *GitError) Error() string {
	if e.Stderr != "" && e.Status > 0 {
		return "git " + e.Args[0] + " failed: " + strings.TrimPrefix(e.Stderr, "fatal: ")
	}
	return strings.TrimSuffix("git "+e.Args[0]+": "+e.Err.Error()+": "+e.Stderr, ": ")
}

func (e *GitError) Unwrap() error { return e.Err }
