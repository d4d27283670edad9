package react

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/step/extract"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/lazyregexp"
	"github.com/united-workforce/uwf/utilagent/agentkit"
	"github.com/united-workforce/uwf/utilagent/internal/runenv"
	"github.com/united-workforce/uwf/utilagent/llm"
	"github.com/united-workforce/uwf/utilagent/roles"
	"github.com/united-workforce/uwf/utilagent/tools"
)

// Session is a conversation that outlives the process. Its file has one message per line and is only appended
// to, so a turn costs the same however long the conversation is, and a killed process loses at most the line
// that it was writing.
//
// Only the runs of one step write a session. Later steps continue in a copy ([Sessions.Copy]), so a retried
// step or a fork of the thread finds the conversation as the last completed step left it.
type Session struct {
	ID       string
	Messages []llm.Message
	// Unfinished lists the turns of the current step from before the session was opened, even if they have
	// been removed from the conversation.
	Unfinished []protocol.Turn
	Spent      protocol.Bill // cost of Unfinished

	cut   bool     // the last message was cut off at the limit for one reply
	store Sessions // without Dir: in memory only
}

// Sessions is a directory of session files. Only their owner can read them, because they contain everything
// the model has read.
type Sessions struct {
	Dir string
	FS  durable.FS // nil for the real disk
	// NewID returns the ID for a new session. Required.
	NewID func() (string, error)
}

// ErrNoSession reports that a session is missing or unreadable.
var ErrNoSession = errors.New("session not found")

// InMemory returns a session that is not saved.
func InMemory(id string, messages ...llm.Message) *Session {
	return &Session{ID: id, Messages: messages}
}

// New creates a session.
func (s Sessions) New(messages ...llm.Message) (*Session, error) {
	id, err := s.NewID()
	if err != nil {
		return nil, fmt.Errorf("new session: %w", err)
	}
	n := &Session{ID: id, Messages: messages, store: s}
	if err := s.fs().MkdirAll(s.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("new session: %w", err)
	}
	var b []byte
	for _, m := range messages {
		text, err := encodeLine(line{Message: m})
		if err != nil {
			return nil, fmt.Errorf("new session: %w", err)
		}
		b = append(b, text...)
	}
	b = append(b, begunLine...)
	if err := durable.WriteFile(s.fs(), s.path(n.ID), b, 0o600); err != nil {
		return nil, fmt.Errorf("new session: %w", err)
	}
	return n, nil
}

// Copy creates a session with the messages of an earlier one and those returned by goOn. Errors may wrap
// [ErrNoSession].
func (s Sessions) Copy(id string, goOn func(old []llm.Message) []llm.Message) (*Session, error) {
	old, err := s.Open(id)
	if err != nil {
		return nil, err
	}
	return s.New(append(old.Messages, goOn(old.Messages)...)...)
}

// Open opens a session to continue it. An incomplete last line is dropped, and removed with the next save.
// Errors may wrap [ErrNoSession].
func (s Sessions) Open(id string) (*Session, error) {
	if !validID().MatchString(id) {
		return nil, fmt.Errorf("session %q: %w", id, ErrNoSession)
	}
	b, err := os.ReadFile(s.path(id))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("session %s: %w", id, ErrNoSession)
	}
	if err != nil {
		return nil, fmt.Errorf("session %s: %w", id, err)
	}
	session := &Session{ID: id, store: s}
	good := session.read(b)
	if len(session.Messages) == 0 {
		return nil, fmt.Errorf("session %s has no messages: %w", id, ErrNoSession)
	}
	if good < len(b) {
		if err := s.fs().Truncate(s.path(id), int64(good)); err != nil {
			return nil, fmt.Errorf("session %s: remove incomplete lines: %w", id, err)
		}
	}
	return session, nil
}

// Add adds a message and saves it. It survives a kill; after a power failure the conversation may be lost and
// starts over.
func (s *Session) Add(m llm.Message) error { return s.add(line{Message: m}) }

func (s *Session) add(l line) error {
	b, err := encodeLine(l)
	if err == nil {
		err = s.append(b)
	}
	if err != nil {
		return fmt.Errorf("save session %s: %w", s.ID, err)
	}
	s.Messages, s.cut = append(s.Messages, l.Message), l.Cut
	return nil
}

// append appends lines to the file.
func (s *Session) append(b []byte) error {
	if s.store.Dir == "" {
		return nil
	}
	return s.store.fs().Append(s.store.path(s.ID), b, 0o600, durable.NoFlush)
}

// validID rejects an ID that could be a path: it comes from a file that another program may have written.
var validID = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9_-]{0,99}$`)

func (s Sessions) path(id string) string { return filepath.Join(s.Dir, id+".jsonl") }

func (s Sessions) fs() durable.FS {
	if s.FS == nil {
		return durable.OS()
	}
	return s.FS
}

// ResolveTool is the name of the tool that ends a run with a value.
const ResolveTool = "resolve"

// wrapped is the parameter for an output that is not an object, because arguments of a tool always are.
const wrapped = "value"

// Resolve describes the value that ends a run.
type Resolve struct {
	// Schema is the JSON Schema of the value, as a JSON value.
	Schema any
	// Check returns what is wrong with a value, for the model, or "". An error ends the run. Nil accepts any
	// value.
	Check func(ctx context.Context, value any) (problem string, err error)
}

// tool returns the declaration of the tool.
func (v *Resolve) tool() llm.Tool {
	return llm.Tool{
		Name:        ResolveTool,
		Description: "Submit the final structured output for this role. Call this when the task is complete.",
		Parameters:  v.parameters(),
	}
}

// parameters returns the schema in the form that endpoints accept: an object type, without store-specific
// formats.
func (v *Resolve) parameters() any {
	schema, _ := plain(v.Schema).(map[string]any)
	if v.wraps() {
		return map[string]any{
			"type": "object", "properties": map[string]any{wrapped: schema},
			"required": []string{wrapped}, "additionalProperties": false,
		}
	}
	if schema == nil {
		schema = map[string]any{}
	}
	schema["type"] = "object"
	return schema
}

// wraps reports whether the value is not an object.
func (v *Resolve) wraps() bool {
	schema, _ := v.Schema.(map[string]any)
	switch t := schema["type"].(type) {
	case string:
		return t != "object"
	case []any:
		for _, name := range t {
			if name == "object" {
				return false
			}
		}
		return true
	}
	return false
}

// value extracts the value from a call's arguments. A model may also pass an object that suspends where the
// schema expects another type.
func (v *Resolve) value(args map[string]any) any {
	if inner, ok := args[wrapped]; ok && v.wraps() && len(args) == 1 {
		return inner
	}
	return args
}

// plain copies a schema without "$schema" and without store-specific formats, which strict endpoints reject.
func plain(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := maps.Clone(v)
		delete(out, "$schema")
		if f := out["format"]; f == "ocas_ref" || f == "cas_ref" {
			delete(out, "format")
		}
		for k, inner := range out {
			out[k] = plain(inner)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, inner := range v {
			out[i] = plain(inner)
		}
		return out
	}
	return v
}

// resolved answers a call of resolve. The value takes effect when all calls of the reply are answered.
func (r *run) resolved(ctx context.Context, args map[string]any) (tools.Result, error) {
	value := r.Resolve.value(args)
	if r.Resolve.Check != nil {
		problem, err := r.Resolve.Check(ctx, value)
		if err != nil {
			return tools.Result{}, err
		}
		if problem != "" {
			return r.guard.failed(tools.Failure("%s\nFix the arguments and call the tool again", problem)), nil
		}
	}
	r.answer.Value, r.answer.Outcome = value, Done
	if b, err := json.MarshalIndent(value, "", "  "); err == nil {
		r.answer.Text = string(b)
	}
	return tools.Result{Text: `{"ok":true}`}, nil
}

// ErrMaxRounds reports that a run used up its rounds, or another budget, before it called resolve.
var ErrMaxRounds = errors.New("max rounds exceeded")

// Roles returns a maker of roles that work with tools until they call resolve with their output. Model is
// required; Resolve is set for each role, and Record defaults to the request's.
func Roles(l Loop) roles.Maker {
	return func(prompt string, schema any) roles.Func {
		return func(ctx context.Context, req *agentkit.Request) (agentkit.Result, error) {
			loop := l
			resolve, err := NewResolve(schema)
			if err != nil {
				return agentkit.Result{}, err
			}
			loop.Resolve = resolve
			if loop.Record == nil {
				loop.Record = req.Turn
			}
			id, err := runenv.Of(ctx).NewID()
			if err != nil {
				return agentkit.Result{}, err
			}
			session := InMemory(id, llm.System(prompt+"\n\n"+ResolveInstructions), llm.User(req.User))
			answer, err := loop.Run(ctx, session)
			res := agentkit.Result{
				Value: answer.Value, SessionID: id, Usage: answer.Bill.Usage(),
				Detail: &protocol.Detail{Model: answer.Model, Outcome: string(answer.Outcome)},
			}
			if err == nil && answer.Outcome != Done {
				err = fmt.Errorf("%w (%s)", ErrMaxRounds, answer.Outcome)
			}
			return res, err
		}
	}
}

// NewResolve returns the Resolve for a role's schema. Every role may also suspend. It fails if the schema is
// invalid.
func NewResolve(schema any) (*Resolve, error) {
	role, err := extract.NewRole(schema)
	if err != nil {
		return nil, err
	}
	return &Resolve{Schema: schema, Check: func(ctx context.Context, value any) (string, error) {
		_, err := extract.Value(ctx, value, role)
		if invalid, ok := errors.AsType[*extract.InvalidError](err); ok {
			return invalid.Error(), nil
		}
		return "", err
	}}, nil
}

// ResolveInstructions instructs a model how to end its run.
const ResolveInstructions = "## How You End\n\n" +
	"Work with your tools. When the task is complete, call the tool `" + ResolveTool + "` with the final output: that ends your turn, and a text does not.\n\n" +
	"If only a person can answer or decide, do not guess. Call `" + ResolveTool + "` with {\"" + protocol.StatusKey + "\": \"" + protocol.SuspendNode +
	"\", \"reason\": \"<what you need, from whom, and why>\"}, and the thread waits for the answer."

// line is a line of a session file: a message, a removal of earlier messages, or the marker after the
// messages with which a step began. Removed messages stay in the file.
type line struct {
	llm.Message
	AtMs  int64           `json:"atMs,omitempty"`  // time of the message
	Usage *protocol.Usage `json:"usage,omitempty"` // usage of the reply
	Cut   bool            `json:"cut,omitempty"`   // the reply was cut off
	Room  *room           `json:"room,omitempty"`
	Begun bool            `json:"begun,omitempty"`
}

const begunLine = `{"begun":true}` + "\n"

func encodeLine(l line) ([]byte, error) {
	b, err := json.Marshal(l)
	if err != nil {
		return nil, fmt.Errorf("encode message: %w", err)
	}
	return append(b, '\n'), nil
}

// read parses the lines of a file and returns the length of the valid part.
func (s *Session) read(file []byte) (good int) {
	begun := false
	for b := range bytes.Lines(file) {
		var l line
		if !bytes.HasSuffix(b, []byte("\n")) || json.Unmarshal(b, &l) != nil {
			break
		}
		switch {
		case l.Begun:
			begun, s.Unfinished, s.Spent = true, nil, protocol.Bill{}
		case l.Room != nil:
			messages, ok := l.Room.apply(s.Messages)
			if !ok {
				return good
			}
			s.Messages = messages
			if turn, ok := l.summaryTurn(); ok && begun {
				s.Unfinished = append(s.Unfinished, turn)
				l.cost(&s.Spent)
			}
		default:
			s.Messages, s.cut = append(s.Messages, l.Message), l.Cut
			if begun {
				s.Unfinished = append(s.Unfinished, l.turn())
				if l.Role == protocol.TurnAssistant {
					l.cost(&s.Spent)
				}
			}
		}
		good += len(b)
	}
	return good
}

// turn converts a message to a turn.
func (l line) turn() protocol.Turn {
	t := protocol.Turn{
		Role: l.Role, Content: l.Content, Reasoning: l.Reasoning, ToolCallID: l.ToolCallID, AtMs: l.AtMs,
	}
	if l.Usage != nil {
		t.Usage = l.Usage.IfKnown()
	}
	for _, call := range l.ToolCalls {
		t.ToolCalls = append(t.ToolCalls, protocol.ToolCall{ID: call.ID, Name: call.Name, Args: recordedArgs(call)})
	}
	return t
}

// summaryTurn returns the summary as sent to the model, with its cost. ok is false if there is none.
func (l line) summaryTurn() (t protocol.Turn, ok bool) {
	if l.Room == nil || l.Room.Summary == "" {
		return t, false
	}
	l.Message = l.Room.stand()
	return l.turn(), true
}

// cost adds the cost of a reply.
func (l line) cost(b *protocol.Bill) {
	if l.Usage == nil {
		b.Add(nil)
		return
	}
	b.Add(l.Usage.IfKnown())
}

// recordedArgs returns a call's arguments as data, or the model's text if they are invalid.
func recordedArgs(call llm.ToolCall) any {
	args, err := llm.ParseArgs(call.Args)
	if err != nil {
		return call.Args
	}
	return args
}
