package agentkit

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/stepwork"
	"github.com/united-workforce/uwf/protocol"
)

// turns collects what happens inside a step, for its detail. Its mutex also
// guards the batch while the agent works; after close the kit has it alone.
type turns struct {
	mu      sync.Mutex
	batch   *cas.Batch
	out     *printer
	now     func() time.Time
	closed  bool
	store   cas.Store
	secrets *secrets

	hashes    []cas.Hash
	begin     int  // how many there were before the run that is at work
	announced int  // how many have been printed
	own       bool // at least one turn came from the agent
}

var errStepOver = errors.New("turn: the run it belongs to is over")

// happened stores and announces a turn of the agent while it works.
func (t *turns) happened(ctx context.Context, turn protocol.Turn) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return errStepOver
	}
	t.own = true
	if err := t.add(ctx, turn); err != nil {
		return err
	}
	return t.announce(ctx)
}

// returned takes over what a run returned: its turns, or if it has told of none,
// its answer as the only one. They are announced only if the step goes on.
func (t *turns) returned(ctx context.Context, res Result, answer string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.own = t.own || len(res.Turns) > 0
	list := res.Turns
	if len(list) == 0 && len(t.hashes) == t.begin {
		list = []protocol.Turn{{Role: protocol.TurnAssistant, Content: answer}}
	}
	for _, turn := range list {
		if err := t.add(ctx, turn); err != nil {
			return err
		}
	}
	return nil
}

// recorded reports whether the run that is at work has told of turns.
func (t *turns) recorded() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.hashes) > t.begin
}

// corrected records the message of a correction.
func (t *turns) corrected(ctx context.Context, message string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.add(ctx, protocol.Turn{Role: protocol.TurnUser, Content: message}); err != nil {
		return err
	}
	t.begin = len(t.hashes)
	return t.announce(ctx)
}

// text adds a text node.
func (t *turns) text(ctx context.Context, s string) (cas.Hash, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return "", errStepOver
	}
	return t.batch.Add(ctx, protocol.Text(strings.ToValidUTF8(t.secrets.text(s), "\uFFFD")))
}

// writing stores and announces a turn that is not finished. It has a batch of
// its own: what becomes of the step does not hang on it.
func (t *turns) writing(ctx context.Context, turn protocol.Turn) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return errStepOver
	}
	batch := cas.NewBatch(t.store, t.now)
	h, err := stepwork.AddTurn(ctx, batch, t.complete(turn))
	if err != nil {
		return err
	}
	if err := batch.Put(ctx); err != nil {
		return err
	}
	return t.out.writing(h)
}

// close ends the recording and returns the turns.
func (t *turns) close() ([]cas.Hash, protocol.Capture) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	if t.own {
		return slices.Clone(t.hashes), protocol.CaptureTurns
	}
	return slices.Clone(t.hashes), protocol.CaptureFinal
}

func (t *turns) add(ctx context.Context, turn protocol.Turn) error {
	h, err := stepwork.AddTurn(ctx, t.batch, t.complete(turn))
	if err != nil {
		return err
	}
	t.hashes = append(t.hashes, h)
	return nil
}

// complete fills in what the kit knows of a turn.
func (t *turns) complete(turn protocol.Turn) protocol.Turn {
	turn.Index = len(t.hashes)
	if turn.AtMs == 0 {
		turn.AtMs = t.now().UnixMilli()
	}
	return t.secrets.turn(turn)
}

// announce stores what was added, readable for others, and prints it.
func (t *turns) announce(ctx context.Context) error {
	if err := t.batch.Put(ctx); err != nil {
		return err
	}
	for ; t.announced < len(t.hashes); t.announced++ {
		if err := t.out.turn(t.hashes[t.announced]); err != nil {
			return err
		}
	}
	return nil
}
