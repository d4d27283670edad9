package acp

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/utilagent/cliagent"
	"github.com/united-workforce/uwf/utilagent/tools"
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

// modes are the names under which agents offer what a permission means, best first.
var modes = map[cliagent.Permission][]string{
	cliagent.Bypass:   {"bypassPermissions", "yolo", "agent-full-access", "full-access", "danger-full-access"},
	cliagent.Edits:    {"acceptEdits", "autoEdit", "auto_edit", "workspace-write"},
	cliagent.Readonly: {"plan", "read-only", "readonly"},
}

// choiceError is a mode or a model that the agent does not have.
type choiceError struct {
	what, value string
	offers      []string
}

func (e *choiceError) Error() string {
	if len(e.offers) == 0 {
		return fmt.Sprintf("the agent has no choice of a %s, so that it cannot be %s", e.what, e.value)
	}
	const most = 12
	list := strings.Join(e.offers[:min(len(e.offers), most)], ", ")
	if len(e.offers) > most {
		list += fmt.Sprintf(" and %d more", len(e.offers)-most)
	}
	return fmt.Sprintf("the agent has no %s %s. It offers: %s", e.what, e.value, list)
}

// configure sets the mode and the model of the session that was just opened.
// mode "" is the one that fits the permission, if the agent has one.
func (c *client) configure(ctx context.Context, p cliagent.Permission, mode, model string) error {
	must := mode != ""
	if !must {
		mode = c.modeFor(p)
	}
	if mode != "" {
		// What an agent may do in its present mode may be less than bypass, never
		// more than it asks us for; but a mode that restricts it must be set.
		if err := c.setMode(ctx, mode); err != nil && (must || p != cliagent.Bypass) {
			return err
		}
	}
	if model != "" {
		return c.setModel(ctx, model)
	}
	return nil
}

// modeFor is the session's mode that fits a permission; "" if it has none.
func (c *client) modeFor(p cliagent.Permission) string {
	offers := c.modeNames()
	for _, name := range modes[p] {
		if slices.Contains(offers, name) {
			return name
		}
	}
	return ""
}

func (c *client) modeNames() (names []string) {
	for _, m := range c.setup.Modes.Available {
		names = append(names, m.ID)
	}
	if len(names) == 0 {
		_, names = c.option("mode")
	}
	return names
}

// setMode sets the session's mode.
func (c *client) setMode(ctx context.Context, mode string) error {
	offers := c.modeNames()
	if !slices.Contains(offers, mode) {
		return &choiceError{what: "session mode", value: mode, offers: offers}
	}
	if len(c.setup.Modes.Available) == 0 {
		option, _ := c.option("mode")
		return c.setOption(ctx, option, mode)
	}
	if c.setup.Modes.Current == mode {
		return nil
	}
	params := map[string]string{"sessionId": c.session, "modeId": mode}
	if err := c.conn.call(ctx, "session/set_mode", params, nil); err != nil {
		return fmt.Errorf("set the session mode %s: %w", mode, err)
	}
	return nil
}

// setModel sets the session's model, in one of the two ways that agents have.
func (c *client) setModel(ctx context.Context, model string) error {
	option, offers := c.option("model")
	if slices.Contains(offers, model) {
		return c.setOption(ctx, option, model)
	}
	for _, m := range c.setup.Models.Available {
		offers = append(offers, m.ID)
	}
	if !slices.Contains(offers, model) {
		return &choiceError{what: "model", value: model, offers: offers}
	}
	if c.setup.Models.Current == model {
		return nil
	}
	params := map[string]string{"sessionId": c.session, "modelId": model}
	if err := c.conn.call(ctx, "session/set_model", params, nil); err != nil {
		return fmt.Errorf("set the model %s: %w", model, err)
	}
	return nil
}

// option is the session's setting of a category, with its values.
func (c *client) option(category string) (configOption, []string) {
	for _, o := range c.setup.Options {
		if o.Category == category {
			return o, choices(o.Options)
		}
	}
	return configOption{}, nil
}

func (c *client) setOption(ctx context.Context, o configOption, value string) error {
	if o.Current == value {
		return nil
	}
	params := map[string]string{"sessionId": c.session, "configId": o.ID, "value": value}
	if err := c.conn.call(ctx, "session/set_config_option", params, nil); err != nil {
		return fmt.Errorf("set %s to %s: %w", o.Category, value, err)
	}
	return nil
}

// model is the model that the session has, as far as the agent says.
func (c *client) model() string {
	if o, _ := c.option("model"); o.Current != "" {
		return o.Current
	}
	return c.setup.Models.Current
}

// prompt is one prompt while the agent works at it. The client's mutex guards it.
type prompt struct {
	session string
	teller  *teller
	going   func() bool // false once it is to be cancelled, and the agent knows
	refuses []string    // what was not allowed
	strays  []string    // other sessions that were told about
}

// update takes an update of any session.
func (p *prompt) update(u updateParams) {
	if u.SessionID == "" || u.SessionID == p.session {
		p.teller.update(u.Update)
		return
	}
	// Either a sub-agent's, or the session has come back under another id, which
	// shows when nothing else comes.
	if !slices.Contains(p.strays, u.SessionID) && len(p.strays) < 10 {
		p.strays = append(p.strays, u.SessionID)
	}
}

// permission finds the call that a permission is asked for.
func (p *prompt) permission(t toolCall, content json.RawMessage) (*call, bool) {
	return p.teller.asked(t, content), p.going()
}

// refused notes what was not allowed.
func (p *prompt) refused(what string) {
	if len(p.refuses) < 20 {
		p.refuses = append(p.refuses, what)
	}
	p.teller.emit(cliagent.Event{Kind: cliagent.Notice, Text: "refused: " + what})
}

// ask sends a prompt and tells what comes of it, until it is answered or ctx
// ends: then it is cancelled, and the agent has the time of patience to say how
// it ended.
func (c *client) ask(ctx context.Context, text string, patience func() time.Duration, emit func(cliagent.Event)) (prompted, *prompt, error) {
	params := promptParams{SessionID: c.session, Prompt: c.blocks(text)}
	p := &prompt{session: c.session, teller: newTeller(emit)}
	cancelled := make(chan struct{})
	p.going = func() bool {
		if ctx.Err() == nil {
			return true
		}
		select {
		case <-cancelled:
		case <-c.conn.over:
		}
		return false
	}
	c.work(p)
	defer c.work(nil)

	patient, giveUp := context.WithCancelCause(context.WithoutCancel(ctx))
	defer giveUp(nil)
	stop := context.AfterFunc(ctx, func() {
		limit := time.After(patience())
		c.cancel(patient)
		close(cancelled)
		select {
		case <-patient.Done():
		case <-limit:
			giveUp(context.Cause(ctx))
		}
	})
	defer stop()
	var result prompted
	err := c.conn.call(patient, "session/prompt", params, &result)
	if err == nil && result.StopReason == "end_turn" && !c.answered(p) {
		err = c.settle(patient, lateWords) // some answer before they have told everything
	}
	return result, p, err
}

// blocks are the content of a prompt. What Claude Code's bridges get is read by Claude
// Code, which would take parts of one text for mentions of files.
func (c *client) blocks(text string) []promptBlock {
	parts := []string{text}
	if strings.Contains(strings.ToLower(c.agent.Info.Name), "claude") {
		parts, _ = cliagent.ClaudeBlocks(text)
	}
	blocks := make([]promptBlock, len(parts))
	for i, part := range parts {
		blocks[i] = promptBlock{Type: "text", Text: part}
	}
	return blocks
}

// answered reports whether the prompt has an answer.
func (c *client) answered(p *prompt) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return p.teller.answered()
}

// cancel asks the agent to end the prompt.
func (c *client) cancel(ctx context.Context) {
	ctx, stop := context.WithTimeout(ctx, closeWait)
	defer stop()
	_ = c.conn.notify(ctx, "session/cancel", map[string]string{"sessionId": c.session}) // otherwise it is stopped
}

// work sets the prompt that is at work. What was held back of the last one is
// told first.
func (c *client) work(p *prompt) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.prompt != nil {
		c.prompt.teller.end()
	}
	c.prompt = p
}

// The kinds of tools that a permission allows. What is not listed, also a kind
// that we do not know, is allowed by bypass alone.
var (
	reading = []string{"read", "search", "think"}
	editing = []string{"edit", "delete", "move"}
)

// allows decides about a tool call.
func (s *service) allows(c *call) bool {
	switch s.permission {
	case cliagent.Bypass:
		return true
	case cliagent.Edits:
		return slices.Contains(reading, c.kind) || slices.Contains(editing, c.kind) && s.inside(c.paths)
	}
	return slices.Contains(reading, c.kind)
}

// inside reports whether all paths lead into the workspace. A call that names none
// cannot be judged by them; the agent's own sandbox is what is left.
func (s *service) inside(paths []string) bool {
	for _, p := range paths {
		if !s.space.Contains(p) {
			return false
		}
	}
	return true
}

// choose picks the option for a decision, by its kind and never by its place.
// One that is for now comes before one that the agent would remember. "": there
// is none.
func choose(options []permissionOption, allow bool) string {
	kinds := []string{"reject_once", "reject_always"}
	if allow {
		kinds = []string{"allow_once", "allow_always"}
	}
	for _, kind := range kinds {
		for _, o := range options {
			if o.Kind == kind {
				return o.ID
			}
		}
	}
	return ""
}

var permissionCancelled = permissionResult{permissionOutcome{Outcome: "cancelled"}}

// permit answers a request for permission. While a prompt is being cancelled the
// answer is always that it was.
func (s *service) permit(raw json.RawMessage) (permissionResult, error) {
	var p permissionParams
	if err := lenient(raw, &p); err != nil {
		return permissionResult{}, &RPCError{Code: codeInvalidParams, Message: err.Error()}
	}
	c, going := s.telling(p.ToolCall.toolCall, p.ToolCall.Content)
	if !going {
		return permissionCancelled, nil
	}
	allow := s.allows(c)
	if !allow {
		s.refuse(c.about())
	}
	option := choose(p.Options, allow)
	if option == "" {
		return permissionCancelled, nil
	}
	return permissionResult{permissionOutcome{Outcome: "selected", Option: option}}, nil
}

// service answers what an agent asks for while it works. Files and directories
// are those of the workspace, whatever the permission is.
type service struct {
	permission cliagent.Permission
	space      *tools.Workspace

	// telling finds the call that a permission is asked for; going is false while
	// the prompt is being cancelled, or if there is none.
	telling func(toolCall, json.RawMessage) (c *call, going bool)
	// refuse notes what was not allowed.
	refuse func(what string)
}

// answer answers a request.
func (s *service) answer(method string, params json.RawMessage) (any, error) {
	switch method {
	case "session/request_permission":
		return s.permit(params)
	case "fs/read_text_file":
		return s.read(params)
	case "fs/write_text_file":
		return nil, s.write(params)
	}
	return nil, &RPCError{Code: codeMethodNotFound, Message: "uwf does not serve " + method}
}

// denied refuses something that the permission does not include.
func (s *service) denied(what string) error {
	s.refuse(what)
	return fmt.Errorf("not allowed to %s: the permission of this agent is %s", what, s.permission)
}

// Bounds of a file that is read: more has to be asked for in parts.
const (
	maxFile  = 8 << 20
	maxLines = 1 << 20
)

type readParams struct {
	Path  string `json:"path"`
	Line  *int64 `json:"line"` // from 1
	Limit *int64 `json:"limit"`
}

type readResult struct {
	Content string `json:"content"`
}

// read reads lines of a file.
func (s *service) read(raw json.RawMessage) (_ any, err error) {
	var p readParams
	if err := lenient(raw, &p); err != nil {
		return nil, &RPCError{Code: codeInvalidParams, Message: err.Error()}
	}
	f, err := s.space.Open(p.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &RPCError{Code: codeNotFound, Message: err.Error()}
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	skip, limit := int64(0), int64(maxLines)
	if p.Line != nil {
		skip = max(0, *p.Line-1)
	}
	if p.Limit != nil {
		limit = max(0, min(*p.Limit, maxLines))
	}
	text, err := readLines(f, skip, limit)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.Path, err)
	}
	return readResult{Content: text}, nil
}

var errTooLarge = fmt.Errorf("it has more than %d bytes: read it in parts, with line and limit", maxFile)

// readLines reads some lines of a text as they are.
func readLines(from io.Reader, skip, limit int64) (string, error) {
	r := bufio.NewReaderSize(from, 64<<10)
	var b strings.Builder
	for limit > 0 {
		piece, err := r.ReadSlice('\n')
		if skip == 0 {
			b.Write(piece)
		}
		if b.Len() > maxFile {
			return "", errTooLarge
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return "", err
		}
		if skip > 0 {
			skip--
		} else {
			limit--
		}
	}
	return strings.ToValidUTF8(b.String(), "\uFFFD"), nil
}

type writeParams struct {
	Path    string  `json:"path"`
	Content *string `json:"content"`
}

// write replaces a file.
func (s *service) write(raw json.RawMessage) error {
	var p writeParams
	if err := lenient(raw, &p); err != nil || p.Content == nil {
		return &RPCError{Code: codeInvalidParams, Message: "fs/write_text_file without content"}
	}
	if s.permission == cliagent.Readonly {
		return s.denied("write " + p.Path)
	}
	return s.space.Write(p.Path, *p.Content)
}
