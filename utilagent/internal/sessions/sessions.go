// Package sessions stores facts about an agent's sessions in a small file per session, so that concurrent
// steps of different threads don't overwrite each other's. Each part of a file has one owner: the kit, or the
// adapter of another vendor's program. A lost file only costs a full prompt.
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

// Dir is the directory for one agent's sessions.
type Dir string

// Of returns the directory for an agent.
func Of(dirs home.Dirs, agent string) Dir {
	return Dir(filepath.Join(dirs.Sessions(), FileName(protocol.AgentName(agent))))
}

// maxFile bounds the size of a file.
const maxFile = 1 << 20

// path does not contain the ID itself, which is an arbitrary string.
func (d Dir) path(session string) string {
	sum := fnv.New128a()
	_, _ = io.WriteString(sum, session)
	return filepath.Join(string(d), "records", hex.EncodeToString(sum.Sum(nil))+".json")
}

// file reads the parts of a session's file. It returns none if the file is damaged or belongs to another
// session.
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

// Get reads one part. It leaves into unchanged if there is none.
func (d Dir) Get(session, part string, into any) (found bool, err error) {
	parts, err := d.file(session)
	return err == nil && json.Unmarshal(parts[part], into) == nil, err
}

// Put replaces one part. If flushed is set, the change survives a power failure.
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
		return durable.AddJSON(durable.OS(), d.path(session), parts)
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

// Load reads a small file. A damaged or missing file is not an error.
func Load[T any](path string, into *T) error {
	data, err := safeopen.ReadFile(path, maxFile, safeopen.NoFollow)
	if errors.Is(err, fs.ErrNotExist) || errors.As(err, new(*safeopen.NotFileError)) || errors.As(err, new(*safeopen.TooBigError)) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("session: %w", err)
	}
	var read T
	if json.Unmarshal(durable.LastLine(data), &read) == nil {
		*into = read
	}
	return nil
}

// FileName returns s with characters replaced that some file systems reject.
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
