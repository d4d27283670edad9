package extract

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/united-workforce/uwf/util/exactjson"
)

// Reply takes what a model replied that was asked to read somebody's answer: one
// JSON value, perhaps in a code fence. null means that the answer does not say what
// the role needs. Errors: *[InvalidError] for data that does not fit; others for what
// is no data.
func Reply(ctx context.Context, text string, r Role) (Output, error) {
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
		return Output{}, fmt.Errorf("the reply is not JSON: %w", err)
	}
	if v == nil {
		return Output{}, errors.New("the answer does not say what the role's output needs")
	}
	return Value(ctx, v, r)
}
