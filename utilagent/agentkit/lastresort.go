package agentkit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/step/extract"
	"github.com/united-workforce/uwf/step/prompt"
	"github.com/united-workforce/uwf/util/config"
)

// lastResort has a model read the answer, if the config names one for it.
func (k *kit) lastResort(ctx context.Context, req *Request, s *settled) error {
	failed := fmt.Errorf("the answer is not the output of role %s: %w", req.Role, s.problem)
	c, err := k.run.Config(ctx)
	if err != nil {
		return s.invalid(errors.Join(failed, err))
	}
	alias := config.ExtractModel(c)
	if alias == "" {
		return s.invalid(failed)
	}
	k.run.Log.Info("a model reads the answer", "model", alias, "problem", s.problem)
	if s.output, err = k.extractWith(ctx, c, alias, req, s); err != nil {
		k.run.Log.Warn("it has not found the role's output", "model", alias, "error", err)
		return s.invalid(errors.Join(failed, fmt.Errorf("extraction by model %s: %w", alias, err)))
	}
	s.by, s.problem = protocol.ByLLM, nil
	return nil
}

func (k *kit) extractWith(ctx context.Context, c protocol.Config, alias string, req *Request, s *settled) (extract.Output, error) {
	said := strings.Join(s.answers, "\n\n")
	if k.run.Extractor == nil {
		return k.extractByUwf(ctx, said, s)
	}
	model, err := config.ResolveModel(c, alias, k.run.Env)
	if err != nil {
		return extract.Output{}, err
	}
	system, user := prompt.Extraction(k.role.ExtractPrompt, req.Schema, said)
	text, usage, err := k.run.Extractor(ctx, model, system, user, req.Schema)
	s.bill.Add(&usage)
	if err != nil {
		return extract.Output{}, err
	}
	return extract.Reply(ctx, text, s.role)
}

// extractByUwf has uwf ask the model: an agent that needs no model of its own
// links no client for one.
func (k *kit) extractByUwf(ctx context.Context, said string, s *settled) (extract.Output, error) {
	e := k.run.Env.With(protocol.EnvHome, k.run.Dirs.Home).With(protocol.EnvStore, k.run.Dirs.Store).
		With(protocol.EnvHead, string(k.thread.Head)).With(protocol.EnvThread, k.inv.thread).With(protocol.EnvRole, k.inv.role)
	asked, err := askUwf(ctx, e, strings.NewReader(said), "step", "extract", "--output", "-")
	if err != nil {
		return extract.Output{}, noModel(asked.program, err)
	}
	var answer protocol.Extraction
	if json.Unmarshal(asked.stdout, &answer) != nil || answer.Usage == nil {
		return extract.Output{}, asked.failure("it gives no answer")
	}
	if answer.Usage.Plausible() != nil {
		answer.Usage = nil
	}
	s.bill.Add(answer.Usage)
	if answer.Error != "" {
		return extract.Output{}, errors.New(answer.Error)
	}
	return extract.Value(ctx, answer.Value, s.role)
}

// noModel says why nobody can ask the model, and what to do.
func noModel(program string, err error) error {
	return &protocol.Error{
		Code: protocol.CodeFailed, Message: fmt.Sprintf("%s is needed to ask it: %v", program, err), Err: err,
		Hints: []string{"set " + protocol.EnvBin + " to the path of uwf, of the same version as the agent, or put it on PATH"},
	}
}

// jsonValue makes a JSON value of anything that encoding/json can write.
func jsonValue(v any) (any, error) {
	b, err := cas.Encode(v)
	if err != nil {
		return nil, fmt.Errorf("value: %w", err)
	}
	return cas.Decode(b)
}

// answerOf is the whole answer as text.
func answerOf(res Result) string {
	switch {
	case res.Suspend != "":
		return valid(res.Suspend)
	case res.Value != nil:
		b, err := json.MarshalIndent(res.Value, "", "  ")
		if err != nil {
			return fmt.Sprint(res.Value) // read says what is wrong with it
		}
		return string(b)
	}
	return valid(res.Output)
}

func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
