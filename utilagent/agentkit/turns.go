package agentkit

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/step"
)

// turns collects the turns of a step for its detail. Its mutex also guards the batch while the agent works;
// after close only the kit uses the batch.
//
// Turns are stored and announced in the background, so that a slow disk does not delay the agent. Code that
// needs the nodes waits for them.
type turns struct {
	mu      sync.Mutex
	batch   *cas.Batch
	out     *printer
	now     func() time.Time
	closed  bool
	store   cas.Store
	secrets *secrets

	prompt  string // the agent's prompt, until it is stored
	hashes  []cas.Hash
	texts   []cas.Hash // prompts, and texts stored with runenv.Run.Text
	begin   int        // number of turns before the current run
	waiting []protocol.TurnLine
	own     bool // the agent recorded at least one turn
	beside  beside[batch]
}

func newTurns(batch *cas.Batch, store cas.Store, out *printer, now func() time.Time, s *secrets) *turns {
	t := &turns{batch: batch, store: store, out: out, now: now, secrets: s}
	t.beside.work = t.publish
	return t
}

var errStepOver = errors.New("turn: its run has ended")

// happened stores and announces a turn while the agent works.
func (t *turns) happened(ctx context.Context, turn protocol.Turn) error {
	return t.queue(ctx, func() error {
		t.own = true
		return t.add(ctx, turn)
	})
}

// text stores and announces a text while the agent works.
func (t *turns) text(ctx context.Context, s string) (h cas.Hash, err error) {
	err = t.queue(ctx, func() error {
		h, err = t.addText(ctx, s)
		return err
	})
	return h, err
}

// queue calls add and queues the new nodes for publishing. It also returns errors of earlier calls.
func (t *turns) queue(ctx context.Context, add func() error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return errStepOver
	}
	if err := t.beside.failed(); err != nil {
		return err
	}
	if err := t.addPrompt(ctx); err != nil {
		return err
	}
	if err := add(); err != nil {
		return err
	}
	t.beside.do(batch{nodes: t.batch.Handover(), lines: t.waiting})
	t.waiting = nil
	return nil
}

// batch holds nodes and the lines that announce them.
type batch struct {
	nodes []cas.Node
	lines []protocol.TurnLine
}

// publish stores and announces batches, even if the run is cancelled.
func (t *turns) publish(list []batch) error {
	var all batch
	for _, one := range list {
		all.nodes, all.lines = append(all.nodes, one.nodes...), append(all.lines, one.lines...)
	}
	if err := t.store.Put(context.Background(), all.nodes...); err != nil {
		return err
	}
	return t.out.announce(all.lines...)
}

// published waits until all queued batches are published.
func (t *turns) published() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.beside.wait()
}

// returned records the turns that a run returned. If there are none, its answer becomes the only turn. They
// are announced only if the step continues.
func (t *turns) returned(ctx context.Context, res Result, answer string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.beside.wait(); err != nil {
		return err
	}
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

// corrected records a message sent after the agent's answer, with the reason if the answer was rejected.
func (t *turns) corrected(ctx context.Context, message string, refused *protocol.Refused) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.beside.wait(); err != nil {
		return err
	}
	if err := t.add(ctx, protocol.Turn{Role: protocol.TurnUser, Content: message, Refused: refused}); err != nil {
		return err
	}
	t.begin = len(t.hashes)
	return t.announce(ctx)
}

// writing stores and announces an unfinished turn, in a separate batch because the step does not depend on
// it.
func (t *turns) writing(ctx context.Context, turn protocol.Turn) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return errStepOver
	}
	if err := t.beside.wait(); err != nil {
		return err
	}
	batch := cas.NewBatch(t.store, t.now)
	h, err := step.AddTurn(ctx, batch, t.complete(t.secrets.unfinished(turn)))
	if err != nil {
		return err
	}
	if err := batch.Put(ctx); err != nil {
		return err
	}
	return t.out.announce(protocol.NewWritingLine(h))
}

// close stops recording and returns the turns.
func (t *turns) close() ([]cas.Hash, protocol.Capture) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	_ = t.beside.wait()                         // the error has ended the run already; see returned
	hashes := append([]cas.Hash{}, t.hashes...) // not nil, so that the detail has a list
	if t.own {
		return hashes, protocol.CaptureTurns
	}
	return hashes, protocol.CaptureFinal
}

func (t *turns) add(ctx context.Context, turn protocol.Turn) error {
	h, err := step.AddTurn(ctx, t.batch, t.complete(turn))
	if err != nil {
		return err
	}
	t.hashes = append(t.hashes, h)
	t.waiting = append(t.waiting, protocol.NewTurnLine(h))
	return nil
}

// given sets the agent's prompt.
func (t *turns) given(prompt string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.prompt = prompt
}

// addPrompt stores the prompt before anything else that the agent reports. By then the agent has named its
// secrets.
func (t *turns) addPrompt(ctx context.Context) error {
	if t.prompt == "" {
		return nil
	}
	_, err := t.addText(ctx, t.prompt)
	t.prompt = ""
	return err
}

func (t *turns) addText(ctx context.Context, s string) (cas.Hash, error) {
	h, err := t.batch.Add(ctx, protocol.Text(valid(t.secrets.Hide(s))))
	if err != nil {
		return "", err
	}
	t.texts = append(t.texts, h)
	t.waiting = append(t.waiting, protocol.NewRequestLine(h))
	return h, nil
}

// complete sets the fields of a turn that the kit fills in.
func (t *turns) complete(turn protocol.Turn) protocol.Turn {
	turn.Index = len(t.hashes)
	if turn.AtMs == 0 {
		turn.AtMs = t.now().UnixMilli()
	}
	return t.secrets.turn(turn)
}

// announce stores the new nodes, makes them readable for other processes, and prints their lines.
func (t *turns) announce(ctx context.Context) error {
	if err := t.batch.Put(ctx); err != nil {
		return err
	}
	lines := t.waiting
	t.waiting = nil
	return t.out.announce(lines...)
}
