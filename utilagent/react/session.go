package react

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/lazyregexp"
	"github.com/united-workforce/uwf/utilagent/llm"
)

// Session is a conversation that outlives the process. Its file has one message
// a line and is only appended to, so a turn costs the same however long the
// conversation is, and a killed process loses at most the line that it was
// writing.
//
// The runs of one step write a session. Whoever goes on with the conversation later
// does so in a copy ([Sessions.Copy]): a step that is tried again, or a fork of
// the thread, then finds the conversation as the last finished step left it.
type Session struct {
	ID       string
	Messages []llm.Message
	// Unfinished is what happened, before the session was opened, in the step that
	// it is about, whatever was left out of the conversation since.
	Unfinished []protocol.Turn
	Spent      protocol.Bill // for it

	store Sessions // without Dir: in memory only
}

// Sessions is a directory of session files. They hold what the model has read,
// so only their owner may read them.
type Sessions struct {
	Dir string
	FS  durable.FS // nil: the real disk
	// NewID names a new session. Required.
	NewID func() (string, error)
}

// ErrNoSession means that there is no such session, or nothing readable in it.
var ErrNoSession = errors.New("session not found")

// InMemory begins a session that ends with the process.
func InMemory(id string, messages ...llm.Message) *Session {
	return &Session{ID: id, Messages: messages}
}

// New begins a session.
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

// Copy begins a session with the messages of an earlier one and those that go on with
// them. Errors: one that wraps [ErrNoSession].
func (s Sessions) Copy(id string, goOn func(old []llm.Message) []llm.Message) (*Session, error) {
	old, err := s.Open(id)
	if err != nil {
		return nil, err
	}
	return s.New(append(old.Messages, goOn(old.Messages)...)...)
}

// Open reads a session to go on in it. A last line that is torn is dropped and
// cut off with the next save. Errors: one that wraps [ErrNoSession].
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
		return nil, fmt.Errorf("session %s holds no message: %w", id, ErrNoSession)
	}
	if good < len(b) {
		if err := s.fs().Truncate(s.path(id), int64(good)); err != nil {
			return nil, fmt.Errorf("session %s: cut off what is torn: %w", id, err)
		}
	}
	return session, nil
}

// Add adds a message and saves it. It survives a kill; a power cut may cost the
// conversation, which then starts over.
func (s *Session) Add(m llm.Message) error { return s.add(line{Message: m}) }

func (s *Session) add(l line) error {
	b, err := encodeLine(l)
	if err == nil {
		err = s.append(b)
	}
	if err != nil {
		return fmt.Errorf("save session %s: %w", s.ID, err)
	}
	s.Messages = append(s.Messages, l.Message)
	return nil
}

// append appends lines to the file.
func (s *Session) append(b []byte) error {
	if s.store.Dir == "" {
		return nil
	}
	return s.store.fs().Append(s.store.path(s.ID), b, 0o600, durable.NoFlush)
}

// validID keeps an id from being a path: it comes from a file that another
// program may have written.
var validID = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9_-]{0,99}$`)

func (s Sessions) path(id string) string { return filepath.Join(s.Dir, id+".jsonl") }

func (s Sessions) fs() durable.FS {
	if s.FS == nil {
		return durable.OS()
	}
	return s.FS
}
