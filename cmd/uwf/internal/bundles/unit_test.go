package bundles

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/bundle"
	"github.com/united-workforce/uwf/cas/redact"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/step/snapshot"
)

// Each error of a lower package gets a code and hints.
func TestErrors(t *testing.T) {
	t.Parallel()
	plain := errors.New("plain")
	for _, c := range []struct {
		name  string
		got   error
		err   error
		code  protocol.Code // "" for unchanged
		hints int
	}{
		{"redact: needed", redactError("T", &redact.NeededError{}), &redact.NeededError{}, protocol.CodeInvalid, 1},
		{"redact: shared", redactError("T", fmt.Errorf("x: %w", &redact.SharedError{Hash: "H"})), nil, protocol.CodeInvalid, 1},
		{"redact: not part", redactError("T", redact.ErrNotPart), redact.ErrNotPart, protocol.CodeNotFound, 1},
		{"redact: not found", redactError("T", fmt.Errorf("x: %w", cas.ErrNotFound)), cas.ErrNotFound, protocol.CodeNotFound, 1},
		{"redact: other", redactError("T", plain), plain, "", 0},
		{"import: future", importError("f", &bundle.FutureError{Thread: "T", At: time.Unix(0, 0)}), nil, protocol.CodeInvalid, 2},
		{"import: link", importError("f", &bundle.LinkError{Links: []string{"a"}}), nil, protocol.CodeInvalid, 2},
		{"import: conflict", importError("f", &bundle.ConflictError{}), nil, protocol.CodeFailed, 2},
		{"import: other", importError("f", plain), plain, "", 0},
		{"export: partial clone", notFetched(&snapshot.MissingError{Partial: "/repo", Object: "abc"}), nil, protocol.CodeFailed, 2},
		{"export: missing", notFetched(&snapshot.MissingError{Object: "abc"}), nil, "", 0},
		{"export: other", notFetched(plain), plain, "", 0},
		{"verify: invalid", unproved(&protocol.Error{Code: protocol.CodeInvalid, Message: "m", Hints: []string{"h"}}), nil, protocol.CodeCorrupt, 1},
		{"verify: not found", unproved(&protocol.Error{Code: protocol.CodeNotFound, Message: "m"}), nil, protocol.CodeNotFound, 0},
		{"verify: other", unproved(plain), plain, "", 0},
	} {
		var coded *protocol.Error
		if has := errors.As(c.got, &coded); c.code == "" {
			assert.False(t, has, c.name)
		} else if assert.True(t, has, c.name) {
			assert.Equal(t, c.code, coded.Code, c.name)
			assert.Len(t, coded.Hints, c.hints, c.name)
			assert.NotEmpty(t, coded.Message, c.name)
		}
		if c.err != nil {
			assert.True(t, errors.Is(c.got, c.err) || fmt.Sprintf("%T", errors.Unwrap(c.got)) == fmt.Sprintf("%T", c.err), c.name)
		}
	}
}

func TestSealText(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "abc", sealText("abc", true))
	assert.Equal(t, "abc (computed)", sealText("abc", false))
	assert.Equal(t, sealText("", true), sealText("", false))
	assert.True(t, strings.HasPrefix(sealText("", true), "none"))
}
