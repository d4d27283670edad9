// Package sessions keeps what is known of an agent's sessions: a small file for each, so that
// steps of different threads at once do not lose each other's. Each part of a file has one owner:
// the kit, or the adapter of another vendor's program. Losing a file costs a full prompt, no more.
package sessions

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/home"
	"github.com/united-workforce/uwf/util/safeopen"
)

// The parts of a file.
const (
	Kit     = "kit"
	Adapter = "adapter"
)

// Dir is the directory of one agent's sessions.
type Dir string

// Of returns the directory of an agent, by its name.
func Of(dirs home.Dirs, agent string) Dir {
	return Dir(filepath.Join(dirs.Sessions(), FileName(protocol.AgentName(agent))))
}

// maxFile bounds a file of ours.
const maxFile = 1 << 20

// path may not hold the id itself, which may be anything.
func (d Dir) path(session string) string {
	sum := fnv.New128a()
	_, _ = io.WriteString(sum, session)
	return filepath.Join(string(d), "records", hex.EncodeToString(sum.Sum(nil))+".json")
}

// file reads the parts of a session's file: none if it is damaged, or another session's.
func (d Dir) file(session string) (map[string]json.RawMessage, error) {
	var parts map[string]json.RawMessage
	if session == "" {
		return nil, nil
	}
	if err := Load(d.path(session), &parts); err != nil {
		return nil, err
	}
	var of string
	if json.Unmarshal(parts["session"], &of) != nil || of != session {
		return nil, nil
	}
	return parts, nil
}

// Get reads a part of what is known of a session; into stays as it is if nothing is.
func (d Dir) Get(session, part string, into any) (found bool, err error) {
	parts, err := d.file(session)
	return err == nil && json.Unmarshal(parts[part], into) == nil, err
}

// Put replaces a part; flushed: it holds after a power cut, too.
func (d Dir) Put(session, part string, value any, flushed bool) error {
	parts, err := d.file(session)
	if err != nil {
		return err
	}
	if parts == nil {
		parts = map[string]json.RawMessage{}
	}
	for key, v := range map[string]any{"session": session, part: value} {
		if parts[key], err = json.Marshal(v); err != nil {
			return err
		}
	}
	if !flushed {
		return durable.ReplaceJSON(durable.OS(), d.path(session), parts)
	}
	data, err := json.Marshal(parts)
	if err != nil {
		return err
	}
	if err := durable.OS().MkdirAll(filepath.Dir(d.path(session)), 0o700); err != nil {
		return err
	}
	return durable.WriteFile(durable.OS(), d.path(session), append(data, '\n'), 0o600)
}

// Load reads a small file; one that is damaged, or no file, is as good as none.
func Load[T any](path string, into *T) error {
	data, err := safeopen.ReadFile(path, maxFile, safeopen.NoFollow)
	if errors.Is(err, fs.ErrNotExist) || errors.As(err, new(*safeopen.NotFileError)) || errors.As(err, new(*safeopen.TooBigError)) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("session: %w", err)
	}
	var read T
	if json.Unmarshal(data, &read) == nil {
		*into = read
	}
	return nil
}

// FileName keeps what every file system takes.
func FileName(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '_':
			return r
		}
		return '_'
	}, s)
	return s[:min(len(s), 60)]
}
