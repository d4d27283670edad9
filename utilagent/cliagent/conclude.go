package cliagent

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/utilagent/agentkit"
	"github.com/united-workforce/uwf/utilagent/errorkind"
)

// result is what is known of a call, however it came out.
func (r *runner) result(out tried) agentkit.Result {
	version := out.version
	if !version.Known() {
		version = r.version()
	}
	name := strings.TrimSpace(r.adapter.Program + " " + version.String())
	outcome := string(out.Kind)
	if out.Error != "" {
		outcome += " " + string(out.Error)
	}
	if r.usedUpRun(out) {
		outcome += "; " + protocol.OutcomeOfRun
	}
	return agentkit.Result{
		SessionID:   cmp.Or(out.Session, out.task.session),
		SessionMark: out.Mark,
		Detail: &protocol.Detail{
			Model: cmp.Or(out.model, r.model), AgentVersion: name,
			Outcome: strings.Join(slices.Concat([]string{outcome}, r.notes, []string{r.held}, r.refusal(out)), "; "),
		},
	}
}

// conclude makes an answer, a reason to wait, or an error of the last call.
func (r *runner) conclude(res *agentkit.Result, out tried) error {
	// A call that was refused at once names no session; one before it, also in an earlier try, has worked in one.
	goesOn := out.canGoOn(r.adapter.Sessions) || (r.worked || r.req.Interrupted) && out.task.session != "" && !r.adapter.Sessions.None
	switch out.Kind {
	case OK:
		return r.answered(res, out)
	case Incomplete:
		if out.text != "" && (isFramed(out.text) || !goesOn) {
			return r.answered(res, out)
		}
		if goesOn {
			res.Suspend = r.adapter.Program + " ended without an answer, although it was asked again. " + r.howToGoOn(out)
			return nil
		}
	case MaxTurns, Budget, Timeout:
		if goesOn {
			res.Suspend = r.limitText(out) + " " + r.howToGoOn(out)
			return nil
		}
	case Failed:
		if goesOn && r.heldUp(out) {
			res.Suspend = r.limitText(out) + " " + r.howToGoOn(out)
			res.Limit = &agentkit.Failure{Kind: protocol.FailedRateLimit, RetryAt: out.resetsAt(r.env.Now())}
			return nil
		}
	}
	return r.failure(out, r.fail(out))
}

// heldUp reports whether only time or money helps, and a person is to decide: the engine neither
// yields to another agent nor runs this one again soon.
func (r *runner) heldUp(out tried) bool {
	switch {
	case r.req.Yields:
	case out.Error == errorkind.Quota:
		return true
	case out.Error == errorkind.RateLimit:
		now := r.env.Now()
		return r.req.Retries == 0 || out.resetsAt(now).After(now.Add(time.Minute))
	}
	return false
}

// failure says what sort of failure an error is.
func (r *runner) failure(out tried, err error) error {
	f := &agentkit.Failure{Err: err}
	if at := r.adapter.Repeats; at != nil && (out.Error == errorkind.RateLimit || out.Error == errorkind.Server) {
		f.Repeated = at(Call{Retries: r.req.Retries, Env: r.env.Get})
	}
	switch {
	case out.Kind == Timeout:
		f.Kind = protocol.FailedTimeout
	case out.Error == errorkind.RateLimit, out.Error == errorkind.Quota:
		f.Kind, f.RetryAt = protocol.FailedRateLimit, out.resetsAt(r.env.Now())
	case out.Error == errorkind.Server:
		f.Kind = protocol.FailedServer
	case out.Error == Crashed:
		f.Kind = protocol.FailedCrash
	default:
		return err
	}
	return f
}

// answered takes the text of a call as the answer. It must be the last turn, where readers
// look for it; if there are no turns, the kit makes it the only one.
func (r *runner) answered(res *agentkit.Result, out tried) error {
	if r.told && out.shown != clip(out.text) && out.Value == nil {
		turn := protocol.Turn{Role: protocol.TurnAssistant, Content: clip(out.text)}
		if err := r.tell(context.WithoutCancel(r.ctx), turn); err != nil {
			return err
		}
	}
	if r.answer = out.text; len(out.text) > maxContent {
		r.req.Warn("the answer of %s is longer than 1 MiB, so its middle is not stored. Until the next step %s has all of it",
			r.adapter.Program, filepath.Join(r.req.RunDir, stdoutFile))
	}
	if res.Output = out.text; out.Value != nil {
		res.Output, res.Value = "", out.Value
	}
	if r.adapter.Sessions.None || res.SessionID == "" && r.adapter.Sessions.Optional {
		id, err := newUUID(r.env.Rand)
		res.SessionID = madeUp + id
		return err
	}
	if res.SessionID == "" {
		message := "it answered, but named no session" + streamEnds(r.req.RunDir)
		return r.fail(tried{Outcome: Outcome{Kind: Failed, Error: errorkind.Unknown, Message: message}})
	}
	return nil
}

// usedUpRun: what the whole run may cost is used up, not only what the agent may.
func (r *runner) usedUpRun(out tried) bool { return out.Kind == Budget && r.ofRun }

// howToGoOn says what resuming does: the config may say that no session is used again.
func (r *runner) howToGoOn(out tried) string {
	if r.usedUpRun(out) {
		return "That was all the run had left: uwf thread resume " + r.req.Thread + " --raise-limit grants more."
	}
	if !r.resume {
		return "Resume the thread to go on; it will be in a new session, since agents." + r.req.Alias + ".resume is false."
	}
	return "Resume the thread to go on in its session."
}

// limitText says which limit was reached.
func (r *runner) limitText(out tried) string {
	switch out.Kind {
	case MaxTurns, Budget: // an argument of a person's own may have set another one than the config
		of := map[OutcomeKind]string{MaxTurns: "turns", Budget: "cost"}[out.Kind]
		said := strings.TrimSuffix(Excerpt(plaintext.Strip(out.Message)), ".")
		return fmt.Sprintf("%s stopped at its limit of %s: %s.", r.adapter.Program, of, said)
	case Failed:
		return fmt.Sprintf("%s %s: %s.", r.adapter.Program, reasons[out.Error], strings.TrimSuffix(Excerpt(plaintext.Strip(out.Message)), "."))
	}
	return fmt.Sprintf("%s was stopped: %s.", r.adapter.Program, out.Message)
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return line
}
