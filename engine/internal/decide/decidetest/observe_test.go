//go:build unix

package decidetest

import (
	"crypto/sha1"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas/fsstore"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/heads/fileheads"
	chains "github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/durable"
)

// seen is an observation of a thread from outside the engine.
type seen struct {
	id             string
	listed         listing
	chain          []link // from the head to the start
	files          string // the tree of its directory; "": there is none
	unsure         bool   // the directory may be incomplete
	alive, intent  bool
	paid, finished int
	last           string // the last step of an agent
}

// link is a node of a chain.
type link struct{ hash, tree, by string }

func (s seen) String() string {
	b := fmt.Sprintf("%s %s: files %.6s, paid %d, finished %d", s.id, [...]string{"absent", "active", "completed", "failed", "cancelled"}[s.listed], s.files, s.paid, s.finished)
	if s.alive {
		b += ", alive"
	}
	if s.intent {
		b += ", an intent"
	}
	for _, l := range s.chain {
		b += fmt.Sprintf(" ← %.6s(%.6s)", l.hash, l.tree)
	}
	return b
}

// look observes the thread and its children.
func (p *place) look() []seen {
	p.t.Helper()
	x := fileheads.Open(p.dir+"/home", durable.OS())
	facts, err := x.AllFacts(p.ctx())
	require.NoError(p.t, err)
	var found []string
	for _, id := range slices.Sorted(maps.Keys(facts)) {
		if f := facts[id]; f.Parent != nil && f.Parent.Thread == p.id && !slices.Contains(p.kids, id) {
			found = append(found, id)
		}
	}
	for _, id := range found {
		if _, err := heads.Find(p.ctx(), x, id); err == nil {
			p.kids = append(p.kids, id)
		}
	}
	alive := p.agents()
	var all []seen
	for i, id := range append([]string{p.id}, p.kids...) {
		s := seen{id: id, alive: alive[id] > 0}
		at, err := heads.Find(p.ctx(), x, id)
		switch {
		case errors.Is(err, heads.ErrNoThread):
		case at.End == nil:
			s.listed = active
		default:
			s.listed = map[protocol.Status]listing{protocol.StatusCompleted: completed, protocol.StatusFailed: failed,
				protocol.StatusCancelled: cancelled}[at.End.Status]
		}
		if err == nil {
			s.chain = p.chain(at.Head)
		}
		dir := p.dir + "/repo"
		if i > 0 {
			dir = p.dir + "/home/worktrees/" + id
		}
		s.files = treeOf(dir)
		_, err = os.Lstat(filepath.Join(p.dir, "home/runs", id, "intent.json"))
		s.intent = err == nil
		for _, n := range p.noted("paid") {
			if n[0] == id {
				s.paid++
			}
		}
		for _, n := range p.noted("finished") {
			if n[0] == id {
				s.finished, s.last = s.finished+1, n[1]
			}
		}
		all = append(all, s)
	}
	return all
}

// granted moves the time past the reset of all limits.
func (p *place) granted() {
	p.t.Helper()
	require.NoError(p.t, os.RemoveAll(p.dir+"/home/limits"))
	x := fileheads.Open(p.dir+"/home", durable.OS())
	facts, err := x.AllFacts(p.ctx())
	require.NoError(p.t, err)
	now := time.Now().UnixMilli()
	for id, f := range facts {
		if f.ParkedUntil > now {
			require.NoError(p.t, x.SetFacts(p.ctx(), id, heads.Facts{ParkedUntil: now - 1}))
		}
	}
}

// chain reads a chain back to its start.
func (p *place) chain(head protocol.Hash) (chain []link) {
	p.t.Helper()
	store, err := fsstore.Open(p.ctx(), p.dir+"/home/cas", fsstore.Options{FS: durable.OS()})
	require.NoError(p.t, err)
	th, err := chains.Open(p.ctx(), store, head)
	require.NoError(p.t, err)
	for step, err := range th.Steps(p.ctx()) {
		require.NoError(p.t, err)
		l := link{hash: string(step.Hash), by: step.Role}
		if step.Files != nil {
			_, l.tree, _ = strings.Cut(string(step.Files.Tree), ":")
		}
		chain = append(chain, l)
	}
	return append(chain, link{hash: string(th.StartHash)})
}

// treeOf returns the git tree of a directory without subdirectories.
func treeOf(dir string) string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return ""
	}
	var tree strings.Builder
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if e.Name() == ".git" || err != nil {
			continue
		}
		sum := sha1.Sum(fmt.Appendf(nil, "blob %d\x00%s", len(text), text))
		fmt.Fprintf(&tree, "100644 %s\x00%s", e.Name(), sum[:])
	}
	return fmt.Sprintf("%x", sha1.Sum(fmt.Appendf(nil, "tree %d\x00%s", tree.Len(), tree.String())))
}
