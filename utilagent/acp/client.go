package acp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/utilagent/cliagent"
)

// How long things take that an agent may never do.
const (
	replayQuiet = time.Second            // without an update, then a replay is over
	replayLimit = 30 * time.Second       // of a replay, after the answer to session/load
	lateWords   = 300 * time.Millisecond // without an update, then there will be no answer
	closeWait   = 2 * time.Second        // for session/close, and for the end after stdin is closed
	expireWait  = 10 * time.Second       // for the end after it has closed its output
)

// child is the agent's process; [cliagent.Process] is one.
type child interface {
	Stdin() io.WriteCloser
	ReadLine() (line []byte, cut int, err error)
	Ended() <-chan struct{}
	Stop(pace time.Duration)
	Wait() (cliagent.Exit, error)
}

// client is a running agent and the session that is open in it.
type client struct {
	child child
	conn  *conn
	serve *service
	odd   oddLines
	quit  context.CancelFunc // ends what requests of the agent wait for
	read  chan struct{}      // closed when all that the agent printed is read
	stir  chan struct{}      // something came for a session

	agent   initializeResult
	session string         // that is open; "": none
	setup   opened         // what its opening said
	counted protocol.Usage // of the session, as the agent told last

	mu     sync.Mutex
	prompt *prompt // nil: none is at work
}

// newClient takes over a child that has just been started.
func newClient(p child, s *service) *client {
	ctx, quit := context.WithCancel(context.Background())
	c := &client{child: p, serve: s, quit: quit, read: make(chan struct{}), stir: make(chan struct{}, 1)}
	s.telling, s.refuse = c.telling, c.refused
	c.conn = newConn(p.Stdin(), c)
	go c.readAll(ctx)
	return c
}

// readAll gives the connection what the agent prints. That some of it is no
// message is common.
func (c *client) readAll(ctx context.Context) {
	defer close(c.read)
	for {
		line, cut, err := c.child.ReadLine()
		if err != nil {
			c.conn.end(errEnded)
			return
		}
		if !c.conn.feed(ctx, line, cut) {
			c.odd.add(line)
		}
	}
}

// errEnded is why calls fail when the agent is gone.
var errEnded = errors.New("the agent has ended")

// start introduces us to the agent.
func (c *client) start(ctx context.Context, offer capabilities, version string) error {
	params := initializeParams{
		ProtocolVersion: protocolVersion, Capabilities: offer,
		Info: info{Name: "uwf", Title: "uwf", Version: version},
	}
	if err := c.conn.call(ctx, "initialize", params, &c.agent); err != nil {
		return fmt.Errorf("initialize: %w", err)
	}
	if v := c.agent.ProtocolVersion; v != nil && *v != protocolVersion {
		return fmt.Errorf("initialize: the agent speaks version %d of the Agent Client Protocol, uwf speaks %d: "+
			"update the older one", *v, protocolVersion)
	}
	return nil
}

// name is the agent's own name.
func (c *client) name() string { return cmp.Or(c.agent.Info.Title, c.agent.Info.Name, "the agent") }

// authenticate logs in by a method that the agent offers.
func (c *client) authenticate(ctx context.Context, method string) error {
	if err := c.conn.call(ctx, "authenticate", map[string]string{"methodId": method}, nil); err != nil {
		return fmt.Errorf("authenticate by %s: %w", method, err)
	}
	return nil
}

// opening is how a session is opened.
type opening string

const (
	openNew    opening = "session/new"
	openResume opening = "session/resume"
	openLoad   opening = "session/load"
	openFork   opening = "session/fork"
)

// errCannotContinue means that the agent has no way to go on with a session.
var errCannotContinue = errors.New("this agent cannot go on with an earlier session")

// ways are how the agent says that it can go on with a session, the best first.
func (c *client) ways(fork bool) (ways []opening) {
	s := c.agent.Capabilities.Session
	switch {
	case fork && has(s.Fork):
		return []opening{openFork}
	case fork:
		return nil
	}
	if has(s.Resume) {
		ways = append(ways, openResume)
	}
	if c.agent.Capabilities.LoadSession {
		ways = append(ways, openLoad)
	}
	return ways
}

// open opens a session in a directory, and leaves it as the client's.
func (c *client) open(ctx context.Context, how opening, session, cwd string) error {
	c.session, c.setup, c.counted = "", opened{}, protocol.Usage{}
	params := openParams{SessionID: session, Cwd: cwd, MCPServers: []string{}, Meta: newOpenMeta()}
	if err := c.conn.call(ctx, string(how), params, &c.setup); err != nil {
		return fmt.Errorf("%s: %w", how, err)
	}
	if c.setup.SessionID == "" && (how == openNew || how == openFork) {
		return fmt.Errorf("%s: the agent gave no session id", how)
	}
	c.session = cmp.Or(c.setup.SessionID, session)
	if how == openLoad {
		return c.settle(ctx, replayQuiet)
	}
	return nil
}

// settle waits until nothing has been told for a while. Some agents go on with a
// replay after they have answered that they are ready, and what they tell then
// must not be taken for an answer.
func (c *client) settle(ctx context.Context, while time.Duration) error {
	limit := time.NewTimer(replayLimit)
	defer limit.Stop()
	quiet := time.NewTimer(while)
	defer quiet.Stop()
	for {
		select {
		case <-c.stir:
			quiet.Reset(while)
		case <-quiet.C:
			return nil
		case <-limit.C:
			return nil
		case <-c.conn.over:
			return c.conn.cause
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// notified implements peer.
func (c *client) notified(method string, params json.RawMessage) {
	if method != "session/update" {
		return // extensions: "_auth/status_update" and their like
	}
	select {
	case c.stir <- struct{}{}:
	default:
	}
	var p updateParams
	if lenient(params, &p) != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.prompt != nil {
		c.prompt.update(p)
	}
}

// asked implements peer.
func (c *client) asked(method string, params json.RawMessage) (any, error) {
	return c.serve.answer(method, params)
}

// telling is the service's view of the calls of the prompt that is at work.
func (c *client) telling(t toolCall, content json.RawMessage) (*call, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.prompt == nil {
		return nil, false
	}
	return c.prompt.permission(t, content)
}

// refused notes what the agent was not allowed to do.
func (c *client) refused(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.prompt != nil {
		c.prompt.refused(what)
	}
}

// expire waits for the end of an agent that prints no more: how it ends says why.
func (c *client) expire(ctx context.Context) {
	limit := time.NewTimer(expireWait)
	defer limit.Stop()
	select {
	case <-c.child.Ended():
	case <-ctx.Done():
	case <-limit.C:
	}
}

// close ends the agent, in bounded time: it is told that the session is over,
// unless it does not listen, and that nothing more will come; then it is stopped.
func (c *client) close(pace time.Duration, listens bool) (cliagent.Exit, error) {
	wait := min(closeWait, pace/3)
	if listens && c.session != "" && has(c.agent.Capabilities.Session.Close) {
		ctx, cancel := context.WithTimeout(context.Background(), wait)
		_ = c.conn.call(ctx, "session/close", map[string]string{"sessionId": c.session}, nil) // it ends anyway
		cancel()
	}
	c.quit()
	c.conn.end(errEnded) // closes its stdin
	select {
	case <-c.child.Ended():
	case <-time.After(wait):
		c.child.Stop(pace)
	}
	<-c.read
	exit, err := c.child.Wait()
	return exit, errors.Join(err, c.serve.space.Close())
}
