package acp

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/united-workforce/uwf/utilagent/cliagent"
	"github.com/united-workforce/uwf/utilagent/tools"
)

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
