package llm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/utilagent/modelcall"
)

// Serve reads a request of package modelcall, sends it, and prints the reply.
func Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	var r modelcall.Request
	if err := json.NewDecoder(in).Decode(&r); err != nil {
		return fmt.Errorf("invalid request on stdin: %w", err)
	}
	reply, err := answer(ctx, r)
	if err != nil {
		reply.Error = &modelcall.Error{Text: err.Error(), Machine: protocol.OfMachine(err)}
	}
	return json.NewEncoder(out).Encode(reply)
}

func answer(ctx context.Context, r modelcall.Request) (reply modelcall.Reply, err error) {
	switch r.Verb {
	case modelcall.List:
		r.Endpoint.Model = "" // not needed
		reply.Models, err = New(r.Endpoint, Options{}).Models(ctx)
	case modelcall.Probe:
		r.Endpoint.Stream = false
		_, err = New(r.Endpoint, Options{Once: true}).Complete(ctx, Request{
			Messages: []Message{User("Answer with the word yes.")},
		})
	case modelcall.Extract:
		reply.Text, reply.Usage, err = Extractor(ctx, r.Endpoint, r.System, r.User, nil)
	default:
		err = errors.New("unknown request " + string(r.Verb))
	}
	return reply, err
}
