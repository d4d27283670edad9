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
	"github.com/united-workforce/uwf/utilagent/cliagent/output"
	"github.com/united-workforce/uwf/utilagent/tools"
)

// Timeouts for agents that never finish an operation.
const (
	replayQuiet = time.Second            // a replay is over after this long without an update
	replayLimit = 30 * time.Second       // maximum duration of a replay after the answer to session/load
	lateWords   = 300 * time.Millisecond // wait for updates that arrive after the answer
	closeWait   = 2 * time.Second        // wait for session/close, and for exit after stdin is closed
	expireWait  = 10 * time.Second       // wait for exit after the agent closed its output
)

// child is the agent's process; [cliagent.Process] implements it.
type child interface {
	Stdin() io.WriteCloser
	ReadLine() (line []byte, err error)
	Ended() <-chan struct{}
	Stop(pace time.Duration)
	Wait() (cliagent.Exit, error)
}

// client is a running agent and the session open in it.
type client struct {
	child child
	conn  *conn
	serve *service
	odd   output.Tail        // output that is no message
	quit  context.CancelFunc // cancels requests from the agent
	read  chan struct{}      // closed when the agent's output has been read to its end
	stir  chan struct{}      // signals an update for a session

	agent   initializeResult
	session string         // ID of the open session, or ""
	setup   opened         // response that opened the session
	counted protocol.Usage // latest usage reported for the session

	mu     sync.Mutex
	prompt *prompt // prompt in progress, or nil
}

// newClient takes ownership of a child that was just started.
func newClient(p child, s *service) *client {
	ctx, quit := context.WithCancel(context.Background())
	c := &client{child: p, serve: s, quit: quit, read: make(chan struct{}), stir: make(chan struct{}, 1)}
	s.permissionCall, s.refuse = c.permissionCall, c.refused
	c.conn = newConn(p.Stdin(), c)
	go c.readAll(ctx)
	return c
}

// maxOdd bounds how much of a line that isn't a message is kept for error texts.
const maxOdd = 300

// readAll passes the agent's output to the connection. Lines that aren't messages are common.
func (c *client) readAll(ctx context.Context) {
	defer close(c.read)
	for {
		line, err := c.child.ReadLine()
		if err != nil {
			c.conn.end(errEnded)
			return
		}
		if !c.conn.feed(ctx, line) {
			_, _ = fmt.Fprintf(&c.odd, "%s\n", line[:min(len(line), maxOdd)]) // never fails
		}
	}
}

// errEnded is returned by calls after the agent has exited.
var errEnded = errors.New("the agent has exited")

// start sends the initialize request.
func (c *client) start(ctx context.Context, offer capabilities, version string) error {
	params := initializeParams{
		ProtocolVersion: protocolVersion, Capabilities: offer,
		Info: info{Name: "uwf", Title: "uwf", Version: version},
	}
	if err := c.conn.call(ctx, "initialize", params, &c.agent); err != nil {
		return fmt.Errorf("initialize: %w", err)
	}
	if v := c.agent.ProtocolVersion; v != nil && *v != protocolVersion {
		return fmt.Errorf("initialize: the agent uses version %d of the Agent Client Protocol, uwf uses %d; "+
			"update the older one", *v, protocolVersion)
	}
	return nil
}

func (c *client) name() string { return cmp.Or(c.agent.Info.Title, c.agent.Info.Name, "the agent") }

// authenticate logs in with a method that the agent offers.
func (c *client) authenticate(ctx context.Context, method string) error {
	if err := c.conn.call(ctx, "authenticate", map[string]string{"methodId": method}, nil); err != nil {
		return fmt.Errorf("authenticate by %s: %w", method, err)
	}
	return nil
}

// opening is a way to open a session.
type opening string

const (
	openNew    opening = "session/new"
	openResume opening = "session/resume"
	openLoad   opening = "session/load"
	openFork   opening = "session/fork"
)

// errCannotContinue reports that the agent cannot continue a session.
var errCannotContinue = errors.New("this agent cannot continue an earlier session")

// ways returns the ways to continue a session that the agent announces, best first.
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

// open opens a session in a directory and makes it the client's current one.
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

// settle waits until no update has arrived for a while. Some agents keep replaying after they reported that
// they are ready; those updates must not be taken for an answer.
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
		return // an extension such as "_auth/status_update"
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

// permissionCall returns the call of the current prompt that a permission request is about.
func (c *client) permissionCall(t toolCall, content json.RawMessage) (*call, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.prompt == nil {
		return nil, false
	}
	return c.prompt.permission(t, content)
}

// refused records an action that the agent was denied.
func (c *client) refused(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.prompt != nil {
		c.prompt.refused(what)
	}
}

// expire waits for an agent that has closed its output to exit, because its exit status explains why.
func (c *client) expire(ctx context.Context) {
	limit := time.NewTimer(expireWait)
	defer limit.Stop()
	select {
	case <-c.child.Ended():
	case <-ctx.Done():
	case <-limit.C:
	}
}

// close ends the agent in bounded time: it closes the session if listens is set, closes stdin, and finally
// stops the process.
func (c *client) close(pace time.Duration, listens bool) (cliagent.Exit, error) {
	wait := min(closeWait, pace/3)
	if listens && c.session != "" && has(c.agent.Capabilities.Session.Close) {
		ctx, cancel := context.WithTimeout(context.Background(), wait)
		_ = c.conn.call(ctx, "session/close", map[string]string{"sessionId": c.session}, nil) // the agent is stopped anyway
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

// modes maps each permission to the mode names that agents use for it, best first.
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
		return fmt.Sprintf("the agent has no %s setting, so it cannot be %s", e.what, e.value)
	}
	const most = 12
	list := strings.Join(e.offers[:min(len(e.offers), most)], ", ")
	if len(e.offers) > most {
		list += fmt.Sprintf(" and %d more", len(e.offers)-most)
	}
	return fmt.Sprintf("the agent has no %s %s; available: %s", e.what, e.value, list)
}

// configure sets the mode and the model of the session that was just opened. If mode is "", it uses the mode
// that fits the permission, if the agent has one.
func (c *client) configure(ctx context.Context, p cliagent.Permission, mode, model string) error {
	must := mode != ""
	if !must {
		mode = c.modeFor(p)
	}
	if mode != "" {
		// The current mode may permit less than Bypass, but never more than the agent asks us for. A mode
		// that restricts it must be set.
		if err := c.setMode(ctx, mode); err != nil && (must || p != cliagent.Bypass) {
			return err
		}
	}
	if model != "" {
		return c.setModel(ctx, model)
	}
	return nil
}

// modeFor returns the session mode that fits a permission, or "".
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

// setModel sets the session's model, by whichever of two methods the agent supports.
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

// option returns the session's setting for a category and its values.
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

// model returns the session's model if the agent reported it.
func (c *client) model() string {
	if o, _ := c.option("model"); o.Current != "" {
		return o.Current
	}
	return c.setup.Models.Current
}

// prompt is a prompt in progress, guarded by the client's mutex.
type prompt struct {
	session string
	emitter *emitter
	going   func() bool // false while the prompt is being cancelled
	refuses []string    // denied actions
	strays  []string    // other session IDs that had updates
}

// update handles an update of any session.
func (p *prompt) update(u updateParams) {
	if u.SessionID == "" || u.SessionID == p.session {
		p.emitter.update(u.Update)
		return
	}
	// It belongs to a subagent, or the session has resumed under another ID; the latter shows when nothing
	// else arrives.
	if !slices.Contains(p.strays, u.SessionID) && len(p.strays) < 10 {
		p.strays = append(p.strays, u.SessionID)
	}
}

// permission returns the call that a permission request is about.
func (p *prompt) permission(t toolCall, content json.RawMessage) (*call, bool) {
	return p.emitter.permissionAsked(t, content), p.going()
}

// refused records a denied action.
func (p *prompt) refused(what string) {
	if len(p.refuses) < 20 {
		p.refuses = append(p.refuses, what)
	}
	p.emitter.emit(cliagent.Event{Kind: cliagent.Notice, Text: "refused: " + what})
}

// ask sends a prompt and emits events until it is answered or ctx ends. When ctx ends, the prompt is
// cancelled and the agent gets patience() to report the outcome.
func (c *client) ask(ctx context.Context, text string, patience func() time.Duration, emit func(cliagent.Event)) (prompted, *prompt, error) {
	params := promptParams{SessionID: c.session, Prompt: c.blocks(text)}
	p := &prompt{session: c.session, emitter: newEmitter(emit)}
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
		err = c.settle(patient, lateWords) // some agents answer before their last updates
	}
	return result, p, err
}

// blocks returns the content of a prompt. Bridges to Claude Code get it in several blocks, because Claude Code
// would take parts of a single text for file mentions.
func (c *client) blocks(text string) []promptBlock {
	parts := []string{text}
	if strings.Contains(strings.ToLower(c.agent.Info.Name), "claude") {
		parts = cliagent.ClaudeBlocks(text)
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
	return p.emitter.answered()
}

// cancel asks the agent to cancel the prompt.
func (c *client) cancel(ctx context.Context) {
	ctx, stop := context.WithTimeout(ctx, closeWait)
	defer stop()
	_ = c.conn.notify(ctx, "session/cancel", map[string]string{"sessionId": c.session}) // if this fails, the agent is stopped
}

// work sets the prompt in progress, after flushing pending text of the previous one.
func (c *client) work(p *prompt) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.prompt != nil {
		c.prompt.emitter.emitCalls()
	}
	c.prompt = p
}

// The kinds of tools that each permission allows. Other kinds, including unknown ones, need Bypass.
var (
	reading = []string{"read", "search", "think"}
	editing = []string{"edit", "delete", "move"}
)

// allows reports whether the permission allows a tool call.
func (s *service) allows(c *call) bool {
	switch s.permission {
	case cliagent.Bypass:
		return true
	case cliagent.Edits:
		return slices.Contains(reading, c.kind) || slices.Contains(editing, c.kind) && s.inside(c.paths)
	}
	return slices.Contains(reading, c.kind)
}

// inside reports whether all paths are inside the workspace. A call without paths cannot be judged; only the
// agent's own sandbox limits it.
func (s *service) inside(paths []string) bool {
	for _, p := range paths {
		if !s.space.Contains(p) {
			return false
		}
	}
	return true
}

// choose returns the ID of the option for a decision, by its kind and never by its position, or "". It
// prefers a one-time option to one that the agent would remember.
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

// permit answers a permission request. While a prompt is being cancelled, the answer is always "cancelled".
func (s *service) permit(raw json.RawMessage) (permissionResult, error) {
	var p permissionParams
	if err := lenient(raw, &p); err != nil {
		return permissionResult{}, &RPCError{Code: codeInvalidParams, Message: err.Error()}
	}
	c, going := s.permissionCall(p.ToolCall.toolCall, p.ToolCall.Content)
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

// service handles the agent's requests. It serves only files in the workspace, whatever the permission.
type service struct {
	permission cliagent.Permission
	space      *tools.Workspace

	// permissionCall returns the call that a permission request is about. going is false if no prompt is in progress
	// or it is being cancelled.
	permissionCall func(toolCall, json.RawMessage) (c *call, going bool)
	// refuse records a denied action.
	refuse func(what string)
}

// answer handles a request.
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

// denied returns the error for an action that the permission does not include.
func (s *service) denied(what string) error {
	s.refuse(what)
	return fmt.Errorf("not allowed to %s: the permission of this agent is %s", what, s.permission)
}

// Bounds of one read or write; the agent must request larger files in parts.
const (
	maxFile  = 8 << 20
	maxLines = 1 << 20
	maxScan  = 1 << 30 // a sparse file can have any size, and nothing else is handled while it is read
)

type readParams struct {
	Path  string `json:"path"`
	Line  *int64 `json:"line"` // 1-based
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

var errTooLarge = fmt.Errorf("it has more than %d bytes; read it in parts with line and limit, up to %d bytes", maxFile, maxScan)

// readLines returns up to limit lines after the first skip lines, unmodified.
func readLines(from io.Reader, skip, limit int64) (string, error) {
	limited := &io.LimitedReader{R: from, N: maxScan}
	r := bufio.NewReaderSize(limited, 64<<10)
	var b strings.Builder
	for limit > 0 {
		piece, err := r.ReadSlice('\n')
		if skip == 0 {
			b.Write(piece)
		}
		if b.Len() > maxFile || limited.N == 0 {
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
	if len(*p.Content) > maxFile {
		return fmt.Errorf("%s has more than %d bytes", p.Path, maxFile)
	}
	return s.space.Write(p.Path, *p.Content)
}
