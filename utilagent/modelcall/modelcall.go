// Package modelcall sends requests to models through the program uwf-llm, so that its users link no HTTP
// client. A request and its reply are JSON on the program's stdin and stdout.
package modelcall

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/step/extract"
	"github.com/united-workforce/uwf/step/prompt"
	"github.com/united-workforce/uwf/util/config"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/proc"
)

// Program sends the requests.
const Program = "uwf-llm"

// argument is the program's only argument.
const argument = "__request"

// Called reports whether a program's arguments ask it to read a [Request] and print a [Reply].
func Called(args []string) bool { return slices.Equal(args, []string{argument}) }

// Verb selects a request.
type Verb string

// Requests to an endpoint.
const (
	List    Verb = "list"    // list the models; the endpoint's Model is not used
	Probe   Verb = "probe"   // ask for one word, without retries
	Extract Verb = "extract" // answer System and User with one JSON object
)

// Request is a request to a model.
type Request struct {
	Verb         Verb
	Endpoint     config.Endpoint
	System, User string // of Extract
}

// Reply is the answer to a [Request].
type Reply struct {
	Models []string       // of List
	Text   string         // of Extract
	Usage  protocol.Usage // of Extract, also after an error
	Error  *Error         // nil after success
}

// Error reports why a model has not answered. Its text contains no key.
type Error struct {
	Text    string
	Machine bool // see [protocol.OfMachine]
}

func (e *Error) Error() string { return e.Text }

// OfMachine implements the interface of [protocol.OfMachine].
func (e *Error) OfMachine() bool { return e.Machine }

// mostReply is the maximum size of a reply in bytes, and grace the time that the program has to end.
const (
	mostReply = 32 << 20
	grace     = time.Second
)

// Do sends a request. The program gets e's environment, in which package llm finds proxies. An error of
// the model is a [*Error].
func Do(ctx context.Context, e env.Env, r Request) (Reply, error) {
	path, err := proc.Beside(cmp.Or(e.Get(protocol.EnvBin), e.Exe), Program, e.Dir, e.Environ)
	if err != nil {
		return Reply{}, unfit(Program+" is not installed, which sends requests to models", err)
	}
	request, err := json.Marshal(r)
	if err != nil {
		return Reply{}, err
	}
	out, err := proc.Run(ctx, proc.Command{Path: path, Args: []string{argument}, Dir: e.Dir, Env: e.Environ, Session: true},
		bytes.NewReader(request), mostReply, grace)
	if err != nil {
		return Reply{}, err
	}
	if out.Code == protocol.CodeUsage.ExitCode() {
		return Reply{}, unfit(Program+" is from another release", nil)
	}
	var reply Reply
	if json.Unmarshal(out.Stdout, &reply) != nil || out.Code != 0 && reply.Error == nil {
		return Reply{}, fmt.Errorf("%s failed (exit status %d): %s", Program, out.Code,
			strings.TrimSpace(string(out.Stderr)))
	}
	if reply.Error != nil {
		return reply, reply.Error
	}
	return reply, nil
}

// ExtractData has the model alias of a config extract a role's data from an answer. heading is the role's own
// instruction for it. The usage is nil if the model was not asked.
func ExtractData(ctx context.Context, e env.Env, c protocol.Config, alias, heading, answer string, role extract.Role) (
	out extract.Output, usage *protocol.Usage, err error,
) {
	model, err := config.ResolveModel(c, alias, e)
	if err != nil {
		return out, nil, err
	}
	system, user := prompt.Extraction(heading, role.Schema, answer)
	reply, err := Do(ctx, e, Request{Verb: Extract, Endpoint: model, System: system, User: user})
	if err == nil || reply.Error != nil {
		usage = &reply.Usage
	}
	if err == nil {
		out, err = extract.Reply(ctx, reply.Text, role)
	}
	if err != nil {
		return extract.Output{}, usage, fmt.Errorf("extraction by model %s: %w", alias, err)
	}
	return out, usage, nil
}

// unfit is the error of a program that must be installed again.
func unfit(message string, err error) error {
	return &protocol.Error{Code: protocol.CodeNotFound, Message: message, Machine: true, Err: err,
		Hints: []string{"go install " + protocol.ModulePath + "/cmd/" + Program + "@latest"}}
}
