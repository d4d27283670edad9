package agentkit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/step"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/runfiles"
)

// play makes the step: request, run, extract, commit. The result also carries what is known about a failed
// step.
func play(ctx context.Context, e env.Env, o Options, inv invocation, out *printer) (_ protocol.Result, failed error) {
	k, err := open(ctx, e, o, inv, out)
	if err != nil {
		return protocol.Result{}, err
	}
	defer func() { failed = k.secrets.error(failed) }()
	defer func() { _ = k.flush() }()
	defer k.run.End() // for what is registered at the end
	defer k.run.End()
	ctx = k.run.With(ctx)
	if k.session, err = k.pick(ctx); err != nil {
		return protocol.Result{}, err
	}
	chosen := k.session // StartOver replaces it
	k.run.Entered = sync.OnceValue(func() error { return k.enter(chosen) })
	enter := func() { _ = k.run.Entered() } // reported below
	go enter()                              // it waits for the disk
	defer enter()
	brief, err := k.brief(ctx)
	if err != nil {
		return protocol.Result{}, err
	}
	req := k.request(brief)
	if c, err := k.run.Config(ctx); err == nil && k.engine {
		req.Yields = yields(c, k.run.Env.Get(protocol.EnvAgent))
		req.Retries, _ = strconv.Atoi(k.run.Env.Get(protocol.EnvRetries)) // on error it is zero: the engine did not set it
	}
	if err := k.addMessages(ctx, req); err != nil {
		return protocol.Result{}, err
	}
	started := e.Now()
	done, err := k.settle(ctx, req)
	if err := k.run.Entered(); err != nil { // nothing was run
		return protocol.Result{}, err
	}
	if err != nil {
		return k.rejected(ctx, req, done, err)
	}
	// End the agent's leftover processes and restore protected files before the files of the step are
	// recorded.
	k.run.End()
	completed := started.Add(max(0, e.Now().Sub(started))) // the wall clock may have been set in the meantime
	done.detail.Turns, done.detail.Capture = k.turns.close()
	done.detail.AgentVersion = cmp.Or(done.detail.AgentVersion, version(o))
	done.detail.Outcome = k.outcome(done.detail.Outcome)
	// The work is done and paid for: a late interrupt must not lose it.
	ctx = context.WithoutCancel(ctx)
	done.output.Value = k.secrets.HideValue(done.output.Value)
	if s := done.output.Suspend; s != nil {
		s.Reason = k.secrets.Hide(s.Reason)
	}
	result, err := step.Submit(ctx, k.batch, k.thread, step.Submission{
		Role: req.Role, Type: k.role.Frontmatter, Output: done.output, ExtractedBy: done.by,
		Agent: protocol.AgentName(o.Name), SessionID: done.session, Detail: done.detail, Prompt: k.secrets.Hide(req.Prompt),
		EdgePrompt: k.secrets.Hide(req.EdgePrompt), Cwd: req.Cwd, RunDir: e.Get(protocol.EnvRunDir), Usage: done.bill.Usage(), LimitBase: k.limitBase,
		StartedAtMs: started.UnixMilli(), CompletedAtMs: completed.UnixMilli(),
		Snapshot: k.ofEngine(protocol.EnvSnapshot), Environ: k.given, Warn: func(text string) { k.run.Warn("%s", text) },
	})
	if err != nil {
		return protocol.Result{SessionID: done.session, Usage: done.bill.Usage()}, err
	}
	k.made(done.session, result.StepHash, done.mark)
	return done.limit.in(result), nil
}

// rejected ends a step that failed. It stores what happened as a detail, which the result line refers to
// although no step does. For a rejected answer it keeps the text and the session with the validation error,
// so that another try can continue there.
func (k *kit) rejected(ctx context.Context, req *Request, done *settled, cause error) (protocol.Result, error) {
	result := protocol.Result{SessionID: done.session, Role: req.Role, Usage: done.bill.Usage()}
	var invalid *invalidError
	answered := errors.As(cause, &invalid)
	switch {
	case answered && k.session.rejected == "":
		k.attempted(done.session, k.secrets.Hide(invalid.problem))
	case answered || req.Interrupted && ctx.Err() == nil:
		k.forget() // don't try a session a third time after two failures at the same head
	}
	ctx = context.WithoutCancel(ctx)
	var err, lost error
	if result.DetailHash, err = k.failedDetail(ctx, done); err != nil {
		lost = fmt.Errorf("store the turns: %w", err)
	}
	if answered {
		if result.RawHash, err = k.batch.Add(ctx, protocol.Text(valid(k.secrets.Hide(invalid.raw)))); err != nil {
			lost = errors.Join(lost, fmt.Errorf("store the answer: %w", err))
		}
	}
	if err := k.batch.Put(ctx); err != nil {
		lost = errors.Join(lost, fmt.Errorf("store the turns: %w", err))
	}
	return result, errors.Join(cause, lost)
}

// failedDetail stores the detail of a failed run: its turns and the complete prompt.
func (k *kit) failedDetail(ctx context.Context, done *settled) (cas.Hash, error) {
	d := done.detail
	d.Turns, d.Capture = k.turns.close()
	if err := k.turns.addPrompt(ctx); err != nil {
		return "", err
	}
	d.Requests = k.turns.texts
	d.SessionID = valid(done.session)
	d.Outcome = k.outcome(cmp.Or(d.Outcome, "failed"))
	d.AgentVersion = cmp.Or(d.AgentVersion, version(k.opts))
	return k.batch.Add(ctx, d)
}

// outcome appends the session choice to the outcome of a run. Both can quote a program.
func (k *kit) outcome(came string) string {
	parts := []string{came, k.session.String()}
	return k.secrets.Hide(strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), "; "))
}

// call runs a function of the agent's author. A panic becomes an error of the step, with its stack on stderr.
func (k *kit) call(what string, run func() (Result, error)) (res Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			fmt.Fprintf(k.run.Env.Stderr, "%s", debug.Stack())
			err = fmt.Errorf("%s: panic: %v", what, p)
		}
	}()
	if res, err = run(); err != nil {
		return res, fmt.Errorf("%s: %w", what, err)
	}
	if res.SessionID == "" {
		return res, fmt.Errorf("%s: the agent returned no session id; Result.SessionID must identify the "+
			"conversation", what)
	}
	return res, nil
}

// messageHeading introduces a message from a person to a working agent.
const messageHeading = "[Message from a person while you work on this:]\n"

// Message is a message from a person to a working agent.
type Message struct {
	Text string
	file runfiles.Message
}

// Messages returns the messages to the thread that no agent has received, oldest first.
func (r *Request) Messages() []Message {
	var letters []Message
	for _, l := range runfiles.Dir(r.RunDir).Unread() {
		letters = append(letters, Message{Text: messageHeading + r.kit.secrets.Hide(valid(l.Text)), file: l})
	}
	return letters
}

// MarkDelivered records that the agent received a message. It is delivered again only if the visit starts
// over. Undelivered messages are kept for the next visit.
func (r *Request) MarkDelivered(l Message) error {
	if err := runfiles.Dir(r.RunDir).MarkDelivered(l.file, r.Head); err != nil {
		return fmt.Errorf("mailbox: %w", err)
	}
	r.kit.messages = strings.TrimPrefix(r.kit.messages+"\n\n"+l.Text, "\n\n")
	return nil
}

// Mail delivers the messages to the thread. An agent that can receive messages while it works should call
// Mail before each request to its model and record each message as a turn.
func (r *Request) Mail(ctx context.Context, deliver func(ctx context.Context, text string) error) error {
	for _, l := range r.Messages() {
		if err := deliver(ctx, l.Text); err != nil {
			return err
		}
		if err := r.MarkDelivered(l); err != nil {
			return err
		}
	}
	return nil
}

// mail returns the messages to the thread for a prompt and records each as a turn.
func (k *kit) mail(ctx context.Context, req *Request) (string, error) {
	var texts []string
	err := req.Mail(ctx, func(ctx context.Context, text string) error {
		texts = append(texts, text)
		return k.turns.corrected(ctx, text, nil)
	})
	return strings.Join(texts, "\n\n"), err
}

// addMessages adds the messages that arrived before the visit to the prompt.
func (k *kit) addMessages(ctx context.Context, req *Request) error {
	if err := runfiles.Dir(req.RunDir).SettleMail(req.Head, req.Interrupted); err != nil {
		return fmt.Errorf("mailbox: %w", err)
	}
	_, err := k.mail(ctx, req)
	req.hear()
	return err
}

// hear adds the messages received so far to the prompt.
func (r *Request) hear() {
	if r.kit.messages != "" {
		r.Prompt += "\n\n" + r.kit.messages
		r.User += "\n\n" + r.kit.messages
	}
	r.kit.turns.given(r.Prompt)
}
