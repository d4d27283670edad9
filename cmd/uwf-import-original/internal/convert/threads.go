package convert

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/heads/fileheads"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/cmd/uwf-import-original/internal/source"
	"github.com/united-workforce/uwf/util/threadid"
)

// chain is a thread of which every step can be read.
type chain struct {
	source.Thread
	workflow cas.Hash
	endedMs  int64 // when its last step ended; 0: it has none
	nodes    map[cas.Hash]bool
}

// threads brings the threads, active and ended.
func (b *bringer) threads(ctx context.Context) error {
	here, err := heads.Standings(ctx, b.index)
	if err != nil {
		return err
	}
	var adopt []fileheads.Adoption
	all := b.source.Threads
	for len(all) > 0 {
		n := 1
		for n < len(all) && all[n].ID == all[0].ID {
			n++
		}
		a, ok, err := b.bringThread(ctx, all[:n], here)
		if err != nil {
			return err
		}
		if ok {
			adopt = append(adopt, a)
		}
		all = all[n:]
	}
	b.report.Threads.Brought = len(adopt)
	if b.options.DryRun {
		return nil
	}
	if err := b.copy.flush(ctx); err != nil {
		return err
	}
	return b.index.Adopt(ctx, adopt, b.now().UnixMilli())
}

// bringThread copies a thread that is known under several heads, perhaps; true:
// the index is to be changed.
func (b *bringer) bringThread(ctx context.Context, known []source.Thread, here map[string]heads.Standing) (none fileheads.Adoption, ok bool, err error) {
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
	// Also of a thread that is here: what was missing may be there now, or is still
	// to be told.
	lost, err := b.copy.reach(ctx, c.Head)
	if err != nil {
		return none, false, err
	}
	if len(lost) > 0 {
		b.problem("thread", c.ID, "it was brought, but not whole: %s", b.tellLost(lost))
	}
	if found == isThere {
		return none, false, nil
	}
	if c.Status == "suspended" {
		b.note("thread", c.ID, "it was suspended: %s; here the nodes decide whether it is", cmp.Or(c.Message, "no message"))
	}
	return fileheads.Adoption{Thread: c.ID, Was: standing.Head, Head: c.Head, End: c.end()}, true, nil
}

// comparison is what a thread of the original's is to one that may be here.
type comparison int

const (
	isNew       comparison = iota // not here, or further than here
	isThere                       // as far as here, or not so far
	hasDiverged                   // it has gone another way
)

// end is the thread's line in our history, nil if it is active.
func (c *chain) end() *heads.Ended {
	status := c.Ended()
	if status == "" {
		return nil
	}
	at := c.CompletedAt
	if at == 0 {
		at = c.endedMs
	}
	return &heads.Ended{Thread: c.ID, Workflow: c.workflow, Head: c.Head, Status: status, CompletedAt: at}
}

// choose reads the chains of a thread and takes the one that has gone on furthest;
// the first, which the newer program wrote, if they go different ways. It is nil,
// and the reasons are in the report, if none can be brought.
func (b *bringer) choose(ctx context.Context, known []source.Thread) (*chain, error) {
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
			b.problem("thread", t.ID, "%s says that it has gone another way, to %s: that was not brought", t.From, c.Head)
		}
	}
	return best, nil
}

// invalidError means that an entry of the original's index says nothing sensible.
type invalidError struct{ reason string }

// Error implements error.
func (e *invalidError) Error() string { return e.reason }

func isInvalid(err error) bool {
	var invalid *invalidError
	return errors.As(err, &invalid)
}

// read reads a thread's chain and workflow in the original's store.
func (b *bringer) read(ctx context.Context, t source.Thread) (*chain, error) {
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

// compare looks at a thread that is here already.
func (b *bringer) compare(ctx context.Context, c *chain, here heads.Standing) (comparison, error) {
	if here.Head == c.Head && (here.End != nil || c.Ended() == "") {
		b.report.Threads.Present++
		return isThere, nil
	}
	if c.nodes[here.Head] && here.End == nil {
		return isNew, nil // the original has gone on since
	}
	ours, err := readChain(ctx, b.store, source.Thread{Head: here.Head})
	if err != nil {
		return hasDiverged, fmt.Errorf("thread %s, which is here already: %w", c.ID, err)
	}
	if ours.nodes[c.Head] {
		b.report.Threads.Present++ // it has gone on here
		return isThere, nil
	}
	b.report.Threads.Failed++
	b.problem("thread", c.ID, "it is at %s here, and at %s in the original: nothing was changed", here.Head, c.Head)
	return hasDiverged, nil
}

// tellLost names nodes that could not be brought.
func (b *bringer) tellLost(lost []cas.Hash) string {
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
