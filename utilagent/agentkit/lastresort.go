package agentkit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/config"
	"github.com/united-workforce/uwf/util/exactjson"
	"github.com/united-workforce/uwf/util/extract"
	"github.com/united-workforce/uwf/util/prompt"
)

// lastResort has a model read the answer, if the agent brings a client and the
// config names a model for it; a default model alone does not switch it on,
// because a model may invent what the answer does not say.
func (k *kit) lastResort(ctx context.Context, req *Request, s *settled) error {
	failed := fmt.Errorf("the answer is not the output of role %s: %w", req.Role, s.problem)
	if k.opts.Extractor == nil {
		return s.invalid(failed)
	}
	c, err := k.config(ctx)
	if err != nil {
		return s.invalid(errors.Join(failed, err))
	}
	alias := config.ExtractModel(c)
	if alias == "" {
		return s.invalid(failed)
	}
	if s.output, err = k.extractWith(ctx, c, alias, req, s); err != nil {
		return s.invalid(errors.Join(failed, fmt.Errorf("extraction by model %s: %w", alias, err)))
	}
	s.by, s.problem = protocol.ByLLM, nil
	return nil
}

func (k *kit) extractWith(ctx context.Context, c protocol.Config, alias string, req *Request, s *settled) (extract.Output, error) {
	model, err := config.ResolveModel(c, alias, k.env)
	if err != nil {
		return extract.Output{}, err
	}
	system, user := prompt.Extraction(req.RoleDef.ExtractPrompt, req.Schema, strings.Join(s.answers, "\n\n"))
	text, usage, err := k.opts.Extractor(ctx, model, system, user, req.Schema)
	s.charge(usage)
	if err != nil {
		return extract.Output{}, err
	}
	v, err := parseJSON(text)
	if err != nil {
		return extract.Output{}, err
	}
	return extract.Value(ctx, v, s.role)
}

// parseJSON reads the reply of an extraction: JSON, maybe in a code fence.
func parseJSON(text string) (any, error) {
	text = strings.TrimSpace(text)
	if inner, ok := strings.CutPrefix(text, "```"); ok {
		_, inner, _ = strings.Cut(inner, "\n")
		text = strings.TrimSuffix(strings.TrimSpace(inner), "```")
	}
	var v any
	err := exactjson.Check([]byte(text))
	if err == nil {
		err = json.Unmarshal([]byte(text), &v)
	}
	if err != nil {
		return nil, fmt.Errorf("the reply is not JSON: %w", err)
	}
	if v == nil {
		return nil, errors.New("the answer does not say what the role's output needs")
	}
	return jsonValue(v)
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
