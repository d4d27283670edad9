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

// Request describes one visit of a role.
type Request struct {
	Thread   string
	Role     string
	Number   int // number of the step to make, from 1
	Visit    int // number of earlier visits to the role
	Workflow protocol.Workflow
	Schema   any // JSON Schema of the output, as a JSON value
	Head     protocol.Hash
	Start    protocol.Start

	EdgePrompt string
	Prompt     string // System and User as one message
	System     string // part that stays the same in all of the role's visits
	User       string // the rest

	// SessionID is the session of the role's last visit with this agent, if Options.Resumes is set and the
	// session can be continued; otherwise "". Prompt then covers only what happened since. See also
	// [Request.StartOver].
	SessionID string
	// Fork means the agent must continue in a copy of the session, never in the session itself, because
	// another thread owns it or it has moved ahead.
	Fork bool
	// Cut, with Fork, is the Result.SessionMark at which the copy must end, because later turns are not in
	// the thread's history. "" copies the whole session.
	Cut string
	// Interrupted means SessionID comes from an earlier try of this step that produced no answer. See
	// [Request.RecordSession].
	Interrupted bool

	Cwd    string
	RunDir string // "" outside the engine
	Alias  string // this agent's name in the config, or its bare name

	// Reported is the usage of this agent's failed tries in this visit. The step already includes it, so it
	// is not part of this run's usage.
	Reported protocol.Usage

	// Yields means the engine handles the provider's rate limits: the run must return a [Failure] and not
	// wait for a person.
	Yields bool
	// Retries is the number of times the engine retries a transient failure of the agent in this visit.
	Retries int

	// Budget is the remaining budget of the whole run, including this step. Agents should respect it if they
	// can. The engine starts no further step once it is used up.
	Budget protocol.Budget

	kit *kit
}

// Step is an earlier step.
type Step struct {
	Hash   protocol.Hash
	Number int // from 1
	protocol.Step
	Output any // the payload itself, not its hash
}

// Steps yields the thread's steps, newest first, with outputs expanded. A redacted output is replaced by an
// object that marks it. Steps are read lazily.
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

// Content returns the answer that the agent gave in a step, or "" if unknown.
func (r *Request) Content(ctx context.Context, s Step) (string, error) {
	return thread.Content(ctx, r.kit.store, s.Detail)
}

// StartOver is for an agent that cannot continue its session. It clears SessionID and related fields and
// rebuilds the prompt with the full history. The reason why is stored in the step's detail.
func (r *Request) StartOver(ctx context.Context, why string) error {
	r.kit.session = afresh("%s", why)
	brief, err := r.kit.brief(ctx)
	if err != nil {
		return err
	}
	interrupted := r.Interrupted
	r.SessionID, r.Fork, r.Cut, r.Interrupted = "", false, "", false
	if interrupted { // repeat the messages that the lost session received in an earlier try
		r.kit.messages = ""
		if err := r.kit.addMessages(ctx, r); err != nil {
			return err
		}
	}
	r.setPrompt(brief)
	return nil
}

// setPrompt sets the prompt.
func (r *Request) setPrompt(b step.Brief) {
	hide := r.kit.secrets.Hide
	r.EdgePrompt = hide(b.Parts.EdgePrompt)
	full, system, user := prompt.All(b.Parts)
	r.Prompt, r.System, r.User = hide(full), system, user
	if r.Prompt != full || b.Parts.Continuing { // then the whole prompt lacks the role
		r.System, r.User = hide(system), hide(user)
	}
	r.hear()
}

// Turn stores a turn as it happens, announces it, and keeps it for the detail. It sets Index and AtMs. Safe
// for concurrent use. Storing is asynchronous, so an error may belong to an earlier turn. An error means that
// the store or stdout is broken: the run should end with it.
//
// The message passed to Continue is already recorded.
func (r *Request) Turn(ctx context.Context, t protocol.Turn) error {
	return r.kit.turns.happened(ctx, t)
}

// Writing shows an unfinished turn, for live views and as a trace if the agent is killed. It is not part of
// the step: record the complete turn with [Request.Turn] later. Each call writes a file, so don't call it for
// every word. Safe for concurrent use.
func (r *Request) Writing(ctx context.Context, t protocol.Turn) error {
	return r.kit.turns.writing(ctx, t)
}

// Hide keeps secrets out of everything that the kit stores and prints from now on: turns, texts, the prompt,
// the output, errors, warnings. Secrets in the config, in .env and in the environment are known already.
// Texts shorter than 8 bytes are not hidden.
func (r *Request) Hide(secrets ...string) { r.kit.secrets.Add(secrets...) }

// Getenv returns a variable from the environment or from .env in the home.
func (r *Request) Getenv(name string) string { return r.kit.run.Env.Get(name) }

// Environ returns the environment for a program in which an untrusted model works: the environment of this
// process, and from .env only variables that aren't secrets or that match names. A name that ends in * is a
// prefix.
func (r *Request) Environ(names ...string) []string {
	return config.Handed(r.kit.given, r.kit.run.Env, names)
}

// Warn prints a warning on stderr, which the engine forwards.
func (r *Request) Warn(format string, args ...any) { r.kit.run.Warn(format, args...) }

// Log writes a JSON line with a text and name-value fields to the run directory, with secrets hidden. It
// discards the line if the run was started by hand.
func (r *Request) Log(text string, fields ...any) { r.kit.run.Log.Info(text, fields...) }

// AtEnd registers f to be called when the step ends, whatever its outcome: after the last correction, before
// the result line, in reverse order of registration. Use it for resources that a correction still needs.
func (r *Request) AtEnd(f func()) { r.kit.run.AtEnd(f) }

// RecordSession records a session while work in it is under way, if Options.Resumes is set: if the agent is killed or
// fails, the next try of this step gets the session with Interrupted set. Call it when the copy of a session
// has been made, at the latest. It returns [ErrWentOn] if the original session was used in the meantime; the
// copy must then be abandoned with [Request.StartOver].
func (r *Request) RecordSession(sessionID string) error {
	if err := r.kit.copied(); err != nil {
		return err
	}
	r.kit.attempted(sessionID, "")
	return nil
}
