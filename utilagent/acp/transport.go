package acp

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/united-workforce/uwf/utilagent/cliagent"
	"github.com/united-workforce/uwf/utilagent/tools"
)

// transport keeps an agent running over the calls of a step, so that a
// correction goes into the session that is open, without a replay.
type transport struct {
	settings settings
	host     *cliagent.Host
	client   *client // nil: none runs
}

// pace is between the signals that stop the agent. When we are stopped ourselves
// there is little time for all of them.
func (t *transport) pace() time.Duration { return t.host.Pace() }

// Call implements cliagent.Transport.
func (t *transport) Call(ctx context.Context, c cliagent.Call, h *cliagent.Host) (cliagent.Outcome, error) {
	if t.host = h; t.client == nil {
		if err := t.launch(c, h); err != nil {
			return cliagent.Outcome{}, err
		}
		if err := t.greet(ctx); err != nil {
			return t.failed(ctx, err)
		}
	}
	held := t.client.session == c.Session // it is open already, so the agent knows it
	if err := t.enter(ctx, c); err != nil {
		return t.failed(ctx, err)
	}
	emit := func(e cliagent.Event) {
		_ = h.Emit(ctx, e) // ctx has ended then, for this error
	}
	emit(cliagent.Event{
		Kind: cliagent.Started, Session: t.client.session, Model: t.client.model(), Version: t.client.agent.Info.Version,
	})
	if ctx.Err() != nil {
		return t.failed(ctx, context.Cause(ctx))
	}
	result, p, err := t.client.ask(ctx, c.Prompt, t.pace, emit)
	if err != nil {
		o, err := t.failed(ctx, err)
		if o.Error != cliagent.SessionNotFound {
			o.Session = p.session
		}
		o.Usage = usage(prompted{}, p.teller)
		return o, err
	}
	emit(cliagent.Event{Kind: cliagent.Break, Model: modelOf(result, p.teller)})
	return t.client.outcome(result, p, c.Resume && !held), nil
}

// modelOf is the model that has answered, as far as the agent says.
func modelOf(r prompted, t *teller) string {
	if list := r.Meta.Quota.Models; len(list) > 0 {
		return list[0].Model
	}
	return t.model
}

// launch starts the agent's program.
func (t *transport) launch(c cliagent.Call, h *cliagent.Host) error {
	space, err := tools.OpenWorkspace(c.Cwd)
	if err != nil {
		return err
	}
	space.Limit(h.OffLimits())
	p, err := h.Start(cliagent.Invocation{Args: c.Extra, Open: true})
	if err != nil {
		return errors.Join(err, space.Close())
	}
	t.client = newClient(p, &service{permission: c.Permission, space: space})
	return nil
}

// greet introduces us, and logs in if that is wanted.
func (t *transport) greet(ctx context.Context) error {
	s := t.settings
	if err := t.client.start(ctx, s.offers(t.client.serve.permission), ownVersion()); err != nil {
		return err
	}
	if s.auth == "" {
		return nil
	}
	return t.client.authenticate(ctx, s.auth)
}

// enter makes the session of a call the client's.
func (t *transport) enter(ctx context.Context, c cliagent.Call) error {
	client := t.client
	if c.Resume && !c.Fork && client.session == c.Session {
		return nil // it is still open
	}
	if err := client.begin(ctx, c); err != nil {
		return err
	}
	return client.configure(ctx, c.Permission, t.settings.mode, c.Model)
}

// begin opens the session of a call, in the first way that the agent has: some say
// that they have one, and do not.
func (c *client) begin(ctx context.Context, call cliagent.Call) error {
	if !call.Resume {
		return c.opened(openNew, c.open(ctx, openNew, "", call.Cwd))
	}
	err := errCannotContinue
	for _, how := range c.ways(call.Fork) {
		if how == openLoad && c.destroys(call) {
			return fmt.Errorf("%w: this one destroys a session that is loaded in the minute in which it was used", errCannotContinue)
		}
		err = c.opened(how, c.open(ctx, how, call.Session, call.Cwd))
		var rpc *RPCError
		if !errors.As(err, &rpc) || rpc.Code != codeMethodNotFound {
			return err
		}
	}
	return err
}

// destroys reports an error of Gemini CLI (0.61): the name of a session's file
// has the minute, so that a load makes a new file in place of one of this minute.
func (c *client) destroys(call cliagent.Call) bool {
	const minute = "200601021504"
	return c.agent.Info.Name == "gemini-cli" && !call.Used.IsZero() &&
		call.Used.UTC().Format(minute) == call.Now.UTC().Format(minute)
}

// opened makes a session lost of an error that says that it cannot be gone on
// with. Whatever else the agent says of a session that it should know means the
// same, except that it cannot be used at all.
func (c *client) opened(how opening, err error) error {
	var rpc *RPCError
	if how == openNew || !errors.As(err, &rpc) || errorKind(rpc) == cliagent.Auth {
		return err
	}
	return fmt.Errorf("%w: %w", errCannotContinue, err)
}

// failed ends a call with an error. An agent that is gone, or that does not
// answer, is ended, so that the next call starts another one.
func (t *transport) failed(ctx context.Context, err error) (cliagent.Outcome, error) {
	client := t.client
	if errors.As(err, new(*RPCError)) || errors.As(err, new(*choiceError)) || errors.Is(err, errCannotContinue) {
		return client.failure(ctx, err), nil
	}
	gone := ctx.Err() == nil && client.conn.ended()
	t.client = nil
	if gone {
		client.expire(ctx)
	}
	exit, closeErr := client.close(t.pace(), ctx.Err() == nil)
	if gone {
		return client.crashed(exit, err), closeErr
	}
	return client.failure(ctx, err), closeErr
}

// Close implements cliagent.Transport.
func (t *transport) Close() error {
	if t.client == nil {
		return nil
	}
	client := t.client
	t.client = nil
	_, err := client.close(t.pace(), true)
	return err
}

// ownVersion is how we introduce ourselves.
func ownVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "devel"
}
