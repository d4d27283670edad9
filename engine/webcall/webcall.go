// Package webcall has the program uwf-web send webhooks, write pages and draw pictures, so that its users link
// neither an HTTP client nor templates. A request is JSON on the program's stdin, a page or picture is its stdout,
// and a reply is JSON on its stderr.
package webcall

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/moderator/diagram"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/proc"
)

// Program carries out requests.
const Program = "uwf-web"

// argument is the program's only argument.
const argument = "__request"

// Called reports whether a program's arguments ask it to carry out a [Request].
func Called(args []string) bool { return slices.Equal(args, []string{argument}) }

// Request is a request with one of its fields.
type Request struct {
	Webhook *Webhook `json:",omitempty"`
	Page    *Page    `json:",omitempty"`
	Picture *Picture `json:",omitempty"`
}

// Webhook posts to an address. Redirects aren't followed, since the body may contain a link that answers a
// question.
type Webhook struct {
	URL    string
	Header map[string]string
	Body   string
}

// Page writes a thread as a self-contained HTML page.
type Page struct {
	Home, Store string
	Thread      string
	Diffs       bool // include the changed lines of files
}

// Picture draws a graph as SVG.
type Picture struct {
	Graph diagram.Graph
	Busy  bool // the field of Graph that its JSON omits
}

// Reply is the answer to a request.
type Reply struct {
	Status int                 `json:",omitempty"` // of HTTP, for a webhook
	Keys   map[cas.Hash]string `json:",omitempty"` // nodes of a page that seem to contain a key; see package keywatch
	Error  *Error              `json:",omitempty"`
}

// Error reports why a request failed. That of a webhook doesn't contain its address, which may contain a key.
type Error struct {
	Code    protocol.Code
	Message string
	Hints   []string `json:",omitempty"`
	Again   bool     `json:",omitempty"` // another try of a webhook may succeed
}

// Write writes the page or picture of a request to w. An error if the program is missing has another hint, which
// describes what works without it.
func Write(ctx context.Context, e env.Env, r Request, w io.Writer, instead string) (Reply, error) {
	reply, err := Do(ctx, e, r, w)
	var missing *protocol.Error
	if errors.As(err, &missing) && missing.Code == protocol.CodeNotFound {
		missing.Hints = append(missing.Hints, instead)
	}
	if wrong := reply.Error; err == nil && wrong != nil {
		err = &protocol.Error{Code: wrong.Code, Message: wrong.Message, Hints: wrong.Hints}
	}
	return reply, err
}

// Do carries out a request. The page or picture, if one is requested, is written to page. Errors of the program are in
// the reply; other errors are errors of page, or a missing or failed program.
func Do(ctx context.Context, e env.Env, r Request, page io.Writer) (reply Reply, err error) {
	path, err := proc.Beside(e.Exe, Program, e.Dir, e.Environ)
	if err != nil {
		return reply, &protocol.Error{Code: protocol.CodeNotFound, Message: Program + " is not installed", Err: err,
			Hints: []string{install}}
	}
	request, err := json.Marshal(r)
	if err != nil {
		return reply, err
	}
	const grace = time.Second
	var replied beginning
	cmd := exec.CommandContext(ctx, path, argument)
	cmd.Dir, cmd.Env, cmd.WaitDelay = e.Dir, e.Environ, grace
	// The page passes through this process, so that an error of the writer is seen here and not by the program.
	out := bufio.NewWriterSize(page, 64<<10)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(request), struct{ io.Writer }{out}, &replied
	err = cmd.Run()
	if err := out.Flush(); err != nil {
		return reply, err
	}
	if ctx.Err() != nil {
		return reply, context.Cause(ctx)
	}
	var failed *exec.ExitError
	if err != nil && !errors.As(err, &failed) {
		return reply, err
	}
	if json.Unmarshal(replied, &reply) != nil || err != nil && reply.Error == nil {
		if r.Webhook != nil {
			replied = nil // it may contain the address
		}
		return Reply{}, failure(err, string(replied))
	}
	if wrong := reply.Error; wrong != nil && wrong.Code == protocol.CodeUsage {
		wrong.Message = Program + " is from another release: " + wrong.Message
		wrong.Hints = []string{install}
	}
	return reply, nil
}

// install is the command that installs the program.
const install = "go install " + protocol.ModulePath + "/cmd/" + Program + "@latest"

// failure describes a program that ended without a reply; err is nil if its status was 0.
func failure(err error, printed string) error {
	const most = 1 << 10
	if err == nil {
		err = errors.New("no reply")
	}
	if printed = strings.TrimSpace(printed[:min(len(printed), most)]); printed != "" {
		return fmt.Errorf("%s failed: %w: %s", Program, err, strings.ToValidUTF8(printed, ""))
	}
	return fmt.Errorf("%s failed: %w", Program, err)
}

// beginning keeps the beginning of what is written to it, and has room for a reply.
type beginning []byte

func (b *beginning) Write(data []byte) (int, error) {
	const most = 4 << 20
	*b = append(*b, data[:min(len(data), most-len(*b))]...)
	return len(data), nil
}
