package agentkit

import (
	"context"
	"iter"

	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/step"
	"github.com/united-workforce/uwf/step/prompt"
	"github.com/united-workforce/uwf/util/config"
)

// Request is one turn of a role.
type Request struct {
	Thread   string
	Role     string
	Number   int // of the step to make, from 1
	Visit    int // how often the role has had its turn before
	Workflow protocol.Workflow
	Schema   any // JSON Schema of the output, as a JSON value
	Head     protocol.Hash
	Start    protocol.Start

	EdgePrompt string
	Prompt     string // everything, as one message
	System     string // the part that stays the same over the role's turns
	User       string // the rest

	// SessionID is of the role's last turn with this agent, if Options.Resumes
	// and it can be continued; else "". Prompt then tells only what happened
	// since. See also [Request.StartOver].
	SessionID string
	// Fork: the agent must go on in a copy of that session, never in the session
	// itself: it is another thread's, or has gone on.
	Fork bool
	// Cut, with Fork: the copy must end where Result.SessionMark was this. What
	// follows is no part of the thread's past. "": all of it is.
	Cut string
	// Interrupted: SessionID is of an earlier try of this very step, which never
	// came to an answer; see [Request.Began].
	Interrupted bool

	Cwd    string
	RunDir string // "" outside the engine
	Alias  string // of this agent in the config; its bare name if it was started otherwise

	// Told is what tries of this visit by this agent have cost that failed: the step
	// holds it, so that it is no part of this run's usage.
	Reported protocol.Usage

	// Yields: the engine knows what to do when the provider grants no more, so the run
	// is to fail with a [Failure], and not to wait for a person.
	Yields bool
	// Retries is how often the engine runs the agent again in this visit if it fails for a reason
	// that may pass.
	Retries int

	// Budget is what the whole run may still cost, this step included. Whoever can keep to
	// it should; the engine begins no further step once it is used up.
	Budget protocol.Budget

	kit *kit
}

// Step is an earlier step.
type Step struct {
	Hash   protocol.Hash
	Number int // from 1
	protocol.Step
	Output any // the payload itself, in place of its hash
}

// Steps yields the thread's steps, newest first, outputs expanded; in the place of
// one that was redacted stands an object that says so. It reads as far as it is
// pulled.
func (r *Request) Steps(ctx context.Context) iter.Seq2[Step, error] {
	return func(yield func(Step, error) bool) {
		for s, err := range r.kit.thread.Steps(ctx) {
			var out thread.Output
			if err == nil {
				out, err = r.kit.thread.Shown(ctx, s)
			}
			if !yield(Step{Hash: s.Hash, Number: s.Index + 1, Step: s.Step, Output: out.Value}, err) || err != nil {
				return
			}
		}
	}
}

// Content is the answer that the agent gave in a step, "" if it is not known.
func (r *Request) Content(ctx context.Context, s Step) (string, error) {
	return thread.Content(ctx, r.kit.store, s.Detail)
}

// StartOver is for an agent that cannot go on in its session: it clears SessionID
// and what belongs to it, and makes the prompt a full one with the whole history.
// The step's detail says why.
func (r *Request) StartOver(ctx context.Context, why string) error {
	r.kit.session = afresh("%s", why)
	brief, err := r.kit.brief(ctx)
	if err != nil {
		return err
	}
	interrupted := r.Interrupted
	r.SessionID, r.Fork, r.Cut, r.Interrupted = "", false, "", false
	if interrupted { // what the lost session has heard in an earlier try is told again
		r.kit.heard = ""
		if err := r.kit.tellAtOnce(ctx, r); err != nil {
			return err
		}
	}
	r.tell(brief)
	return nil
}

// tell sets the prompt.
func (r *Request) tell(b step.Brief) {
	hide := r.kit.secrets.Hide
	r.EdgePrompt = hide(b.Parts.EdgePrompt)
	r.Prompt, r.System, r.User = hide(prompt.Full(b.Parts)), hide(prompt.System(b.Parts)), hide(prompt.User(b.Parts))
	r.hear()
}

// Turn stores a turn as it happens, announces it, and keeps it for the detail.
// Index and AtMs are filled in. Safe for concurrent use. It is stored beside the
// agent's work, so an error may be that of an earlier turn. It means that the
// store or stdout is broken: the run should end with it.
//
// The message that Continue is given is recorded already.
func (r *Request) Turn(ctx context.Context, t protocol.Turn) error {
	return r.kit.turns.happened(ctx, t)
}

// Writing shows a turn that is not finished yet, for live views and for what a
// killed agent leaves. It is no part of the step: tell of the whole turn with
// [Request.Turn] later. It costs a file, so it is for now and then, not for each
// word. Safe for concurrent use.
func (r *Request) Writing(ctx context.Context, t protocol.Turn) error {
	return r.kit.turns.writing(ctx, t)
}

// Hide keeps secrets out of everything that the kit stores and prints from now
// on: turns, texts, the prompt, the output, errors, warnings. Those of the config, of .env and of the environment are known already. Texts of
// less than 8 bytes are not hidden.
func (r *Request) Hide(secrets ...string) { r.kit.secrets.Add(secrets...) }

// Getenv is a variable of the environment, or of .env in the home.
func (r *Request) Getenv(name string) string { return r.kit.run.Env.Get(name) }

// Environ is the environment for a program that a stranger's model works in: what
// this process was started with, and of .env what is no secret or is named; a name
// that ends with * is a prefix.
func (r *Request) Environ(names ...string) []string {
	return config.Handed(r.kit.given, r.kit.run.Env, names)
}

// Warn tells a person, on stderr; the engine hands it on.
func (r *Request) Warn(format string, args ...any) { r.kit.run.Warn(format, args...) }

// Log notes what the agent did and why, with fields by name and value: a JSON line
// in the run directory, clean and without secrets. Nothing is kept of a run that
// was started by hand.
func (r *Request) Log(text string, fields ...any) { r.kit.run.Log.Info(text, fields...) }

// AtEnd has f called when the step is over, however it ended: after the last
// correction, before the result line. Later ones are called first. It is for what
// a run leaves open so that a correction finds it.
func (r *Request) AtEnd(f func()) { r.kit.run.AtEnd(f) }

// Began remembers a session while its work goes on, if Options.Resumes: when the
// agent is killed, or fails, the next try of this step gets the session with
// Interrupted set. An agent calls it when the copy of a session has been made, at
// the latest: the error is [ErrWentOn] if that session was used meanwhile. The
// copy must then be given up, see [Request.StartOver].
func (r *Request) Began(sessionID string) error {
	if err := r.kit.copied(); err != nil {
		return err
	}
	r.kit.attempted(sessionID, "")
	return nil
}
