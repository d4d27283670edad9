package agentkit

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/step"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/proc"
	"github.com/united-workforce/uwf/util/runfiles"
)

// play makes the step: request, run, extract, commit. What is known of a failed
// one is in the result too.
func play(ctx context.Context, e env.Env, o Options, inv invocation, out *printer) (_ protocol.Result, failed error) {
	k, err := open(ctx, e, o, inv, out)
	if err != nil {
		return protocol.Result{}, err
	}
	defer func() { failed = k.secrets.error(failed) }()
	defer func() { _ = k.flush() }()
	defer k.run.End()
	ctx = k.run.With(ctx)
	if k.session, err = k.pick(ctx); err != nil {
		return protocol.Result{}, err
	}
	brief, err := k.brief(ctx)
	if err != nil {
		return protocol.Result{}, err
	}
	req := k.request(brief)
	if c, err := k.run.Config(ctx); err == nil && k.engine {
		req.Yields = yields(c, k.run.Env.Get(protocol.EnvAgent))
		req.Retries, _ = strconv.Atoi(k.run.Env.Get(protocol.EnvRetries)) // unset: the engine does not say
	}
	if err := k.tellAtOnce(ctx, req); err != nil {
		return protocol.Result{}, err
	}
	if err := k.enter(); err != nil {
		return protocol.Result{}, err
	}
	started := e.Now()
	done, err := k.settle(ctx, req)
	if err != nil {
		return k.rejected(ctx, req, done, err)
	}
	// What the agent leaves behind is ended, and what it must not have changed is put back:
	// the files of the step are those that stay.
	k.run.End()
	completed := started.Add(max(0, e.Now().Sub(started))) // the clock may have been set meanwhile
	done.detail.Turns, done.detail.Capture = k.turns.close()
	done.detail.AgentVersion = cmp.Or(done.detail.AgentVersion, version(o))
	done.detail.Outcome = k.outcome(done.detail.Outcome)
	// The work is done and paid for: an interrupt that comes now must not lose it.
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
		Snapshot: k.snapshot(), Environ: k.given, Warn: func(text string) { k.run.Warn("%s", text) },
	})
	if err != nil {
		return protocol.Result{SessionID: done.session, Usage: done.bill.Usage()}, err
	}
	k.made(done.session, result.StepHash, done.mark)
	return done.limit.in(result), nil
}

// rejected ends a step that failed. What happened is kept as a detail, which the
// result line names though no step refers to it. Of an answer that could not be
// used the text is kept, and the session with what was wrong, so that another try
// can go on from there.
func (k *kit) rejected(ctx context.Context, req *Request, done *settled, cause error) (protocol.Result, error) {
	result := protocol.Result{SessionID: done.session, Role: req.Role, Usage: done.bill.Usage()}
	var invalid *invalidError
	answered := errors.As(cause, &invalid)
	switch {
	case answered && k.session.rejected == "":
		k.attempted(done.session, k.secrets.Hide(invalid.problem))
	case answered || req.Interrupted && ctx.Err() == nil:
		k.forget() // a session that fails twice at one place is not worth a third try
	}
	ctx = context.WithoutCancel(ctx)
	var err, lost error
	if result.DetailHash, err = k.failedDetail(ctx, done); err != nil {
		lost = fmt.Errorf("keep what happened: %w", err)
	}
	if answered {
		if result.RawHash, err = k.batch.Add(ctx, protocol.Text(valid(k.secrets.Hide(invalid.raw)))); err != nil {
			lost = errors.Join(lost, fmt.Errorf("keep the answer: %w", err))
		}
	}
	if err := k.batch.Put(ctx); err != nil {
		lost = errors.Join(lost, fmt.Errorf("keep what happened: %w", err))
	}
	return result, errors.Join(cause, lost)
}

// failedDetail is what a run that failed leaves: its turns, and the prompt with
// all that it has told of its questions.
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

// outcome adds to how a run came out what it went on in.
func (k *kit) outcome(came string) string {
	parts := []string{came, k.session.String()}
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), "; ")
}

// call runs a function of the agent's author. A panic is an error of the step,
// with its stack on stderr.
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
		return res, fmt.Errorf("%s: the agent returned no session id: Result.SessionID is required, "+
			"any text that names the conversation", what)
	}
	return res, nil
}

// asked is what uwf said to a question.
type asked struct {
	program string // its path, or the name under which it was not found
	stdout  []byte
	said    string // the first line of stderr
	ended   error
}

// failure says why stdout is no answer.
func (a asked) failure(silent string) error {
	return errors.Join(errors.New(cmp.Or(a.said, silent)), a.ended)
}

// askUwf runs the uwf that started this agent, by $UWF_BIN, else the one on PATH,
// with JSON output. That it fails is no error here: its stdout may be an answer all
// the same. Errors: there is no uwf; the context's.
func askUwf(ctx context.Context, e env.Env, stdin io.Reader, args ...string) (asked, error) {
	name := cmp.Or(e.Get(protocol.EnvBin), "uwf")
	program, err := proc.LookPath(name, e.Dir, e.Environ)
	if err != nil {
		return asked{program: name}, err
	}
	cmd := exec.CommandContext(ctx, program, append([]string{"--format", "json"}, args...)...)
	cmd.Dir, cmd.Env = e.Dir, e.Environ
	cmd.WaitDelay = 5 * time.Second
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, &stdout, &stderr
	ended := cmd.Run()
	if ctx.Err() != nil {
		return asked{program: program}, context.Cause(ctx)
	}
	said, _, _ := strings.Cut(strings.TrimSpace(stderr.String()), "\n")
	return asked{program: program, stdout: stdout.Bytes(), said: said, ended: ended}, nil
}

// toldMark begins what a person tells an agent at work.
const toldMark = "[A person tells you, while you work on this:]\n"

// Message is something that a person tells an agent at work.
type Message struct {
	Text string
	file runfiles.Message
}

// Messages are what people have told the thread and no agent has heard, oldest first.
func (r *Request) Messages() []Message {
	var letters []Message
	for _, l := range runfiles.Dir(r.RunDir).Unread() {
		letters = append(letters, Message{Text: toldMark + r.kit.secrets.Hide(valid(l.Text)), file: l})
	}
	return letters
}

// MarkDelivered notes that the agent was told of a letter: it is not given again, except where
// the visit has to start over. What is not heard is kept for the next visit.
func (r *Request) MarkDelivered(l Message) error {
	if err := runfiles.Dir(r.RunDir).MarkDelivered(l.file, r.Head); err != nil {
		return fmt.Errorf("mailbox: %w", err)
	}
	r.kit.heard = strings.TrimPrefix(r.kit.heard+"\n\n"+l.Text, "\n\n")
	return nil
}

// Mail delivers what people have told the thread. An agent that can hear something while
// it works should ask before each question to its model, and make each a turn.
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

// mail is what people have told the thread, for a prompt: each is a turn of its own.
func (k *kit) mail(ctx context.Context, req *Request) (string, error) {
	var texts []string
	err := req.Mail(ctx, func(ctx context.Context, text string) error {
		texts = append(texts, text)
		return k.turns.corrected(ctx, text, nil)
	})
	return strings.Join(texts, "\n\n"), err
}

// tellAtOnce adds to the prompt what was told before the visit began.
func (k *kit) tellAtOnce(ctx context.Context, req *Request) error {
	if err := runfiles.Dir(req.RunDir).SettleMail(req.Head, req.Interrupted); err != nil {
		return fmt.Errorf("mailbox: %w", err)
	}
	_, err := k.mail(ctx, req)
	req.hear()
	return err
}

// hear adds to the prompt what was told so far.
func (r *Request) hear() {
	if r.kit.heard != "" {
		r.Prompt += "\n\n" + r.kit.heard
		r.User += "\n\n" + r.kit.heard
	}
	r.kit.turns.given(r.Prompt)
}
