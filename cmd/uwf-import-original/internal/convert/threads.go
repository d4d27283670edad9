package convert

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/cmd/uwf-import-original/internal/source"
	"github.com/united-workforce/uwf/util/threadid"
)

// chain is a thread in which every step is readable.
type chain struct {
	source.Thread
	workflow cas.Hash
	endedMs  int64 // end of its last step; 0 if it has none
	nodes    map[cas.Hash]bool
}

// threads imports active and ended threads.
func (b *importer) threads(ctx context.Context) error {
	here, err := heads.ThreadStates(ctx, b.index)
	if err != nil {
		return err
	}
	var adopt []heads.Adoption
	all := b.source.Threads
	for len(all) > 0 {
		n := 1
		for n < len(all) && all[n].ID == all[0].ID {
			n++
		}
		a, ok, err := b.importThread(ctx, all[:n], here)
		if err != nil {
			return err
		}
		if ok {
			adopt = append(adopt, a)
		}
		all = all[n:]
	}
	b.report.Threads.Imported = len(adopt)
	if b.options.DryRun {
		return nil
	}
	if err := b.copy.flush(ctx); err != nil {
		return err
	}
	return b.index.Adopt(ctx, adopt, b.now().UnixMilli())
}

// importThread copies a thread, which may be known under several heads. It returns true if the index must be
// changed.
func (b *importer) importThread(ctx context.Context, known []source.Thread, here map[string]heads.ThreadState) (none heads.Adoption, ok bool, err error) {
	c, err := b.choose(ctx, known)
	if err != nil || c == nil {
		b.report.Threads.Failed++
		return none, false, err
	}
	standing, isHere := here[c.ID]
	found := isNew
	if isHere {
		if found, err = b.compare(ctx, c, standing); err != nil || found == hasDiverged {
			return none, false, err
		}
	}
	// Do this even for an existing thread: missing nodes may be available now, or must be reported again.
	lost, err := b.copy.reach(ctx, c.Head)
	if err != nil {
		return none, false, err
	}
	if len(lost) > 0 {
		b.problem("thread", c.ID, "imported incompletely: %s", b.listLost(lost))
	}
	if found == isThere {
		return none, false, nil
	}
	if c.Status == "suspended" {
		b.note("thread", c.ID, "it was suspended: %s; here its nodes decide whether it is", cmp.Or(c.Message, "no message"))
	}
	return heads.Adoption{Thread: c.ID, Was: standing.Head, Head: c.Head, End: c.end()}, true, nil
}

// comparison is the relation between an original's thread and one in this home.
type comparison int

const (
	isNew       comparison = iota // missing here, or longer than here
	isThere                       // not longer than here
	hasDiverged                   // continued differently
)

// end returns the thread's entry for the history, or nil if it is active.
func (c *chain) end() *heads.Ended {
	status := c.Ended()
	if status == "" {
		return nil
	}
	at := c.CompletedAt
	if at <= 0 || at > heads.LastMs { // the index rejects it, with all other threads
		at = min(max(c.endedMs, 0), heads.LastMs)
	}
	return &heads.Ended{Thread: c.ID, Workflow: c.workflow, Head: c.Head, Status: status, CompletedAt: at}
}

// choose reads the chains of a thread and returns the longest, or the first (from the newer program) if they
// diverge. It returns nil, with the reasons in the report, if none can be imported.
func (b *importer) choose(ctx context.Context, known []source.Thread) (*chain, error) {
	var best *chain
	for _, t := range known {
		c, err := b.read(ctx, t)
		switch {
		case err != nil && !isOfNode(err) && !isInvalid(err):
			return nil, err
		case err != nil:
			b.problem("thread", t.ID, "%s: %v", t.From, err)
		case best == nil:
			best = c
		case best.Head == c.Head:
			if best.Ended() == "" && c.Ended() != "" {
				best = c
			}
		case c.nodes[best.Head]:
			best = c
		case !best.nodes[c.Head]:
			b.problem("thread", t.ID, "%s has another head for it, %s, which was not imported", t.From, c.Head)
		}
	}
	return best, nil
}

// invalidError reports an invalid entry in the original's index.
type invalidError struct{ reason string }

func (e *invalidError) Error() string { return e.reason }

func isInvalid(err error) bool {
	var invalid *invalidError
	return errors.As(err, &invalid)
}

// read reads a thread's chain and workflow from the original's store.
func (b *importer) read(ctx context.Context, t source.Thread) (*chain, error) {
	if !t.Head.Valid() {
		return nil, &invalidError{fmt.Sprintf("its head, %q, is not a hash", t.Head)}
	}
	if !threadid.Valid(t.ID) {
		return nil, &invalidError{"this is not the id of a thread"}
	}
	return readChain(ctx, b.source.Nodes, t)
}

func readChain(ctx context.Context, r cas.Reader, t source.Thread) (*chain, error) {
	th, err := thread.Open(ctx, r, t.Head)
	if err != nil {
		return nil, err
	}
	if _, err := th.Workflow(ctx); err != nil {
		return nil, err
	}
	c := &chain{Thread: t, workflow: th.Start.Workflow, nodes: map[cas.Hash]bool{th.StartHash: true}}
	if th.Last != nil {
		c.endedMs = th.Last.CompletedAtMs
	}
	for s, err := range th.Steps(ctx) {
		if err != nil {
			return nil, err
		}
		c.nodes[s.Hash] = true
	}
	return c, nil
}

// compare compares a thread with an existing one in this home.
func (b *importer) compare(ctx context.Context, c *chain, here heads.ThreadState) (comparison, error) {
	if here.Head == c.Head && (here.End != nil || c.Ended() == "") {
		b.report.Threads.Present++
		return isThere, nil
	}
	if c.nodes[here.Head] && here.End == nil {
		return isNew, nil // the original continued
	}
	ours, err := readChain(ctx, b.store, source.Thread{Head: here.Head})
	if err != nil && !isOfNode(err) {
		return hasDiverged, fmt.Errorf("existing thread %s: %w", c.ID, err)
	}
	if err != nil {
		b.report.Threads.Failed++
		b.problem("thread", c.ID, "it is damaged here, so nothing was changed: %v", err)
		return hasDiverged, nil
	}
	if ours.nodes[c.Head] {
		b.report.Threads.Present++ // it continued here
		return isThere, nil
	}
	b.report.Threads.Failed++
	b.problem("thread", c.ID, "it is at %s here, but at %s in the original; nothing was changed", here.Head, c.Head)
	return hasDiverged, nil
}

// listLost lists nodes that could not be imported.
func (b *importer) listLost(lost []cas.Hash) string {
	const most = 5
	text := ""
	for i, h := range lost {
		if i == most {
			return text + fmt.Sprintf("; and %d more", len(lost)-most)
		}
		if i > 0 {
			text += "; "
		}
		text += fmt.Sprintf("node %s: %s", h, b.copy.bad[h])
	}
	return text
}
