// Package prosetest keeps prose out of tests. A test records a text of the program, and testdata/prose.golden
// of its package contains all recorded texts. Changing a sentence affects only that file, which "go test
// ./pkg -update" rewrites.
//
// A test still asserts facts itself: codes, exit statuses, JSON values, files on disk. Texts are normalized
// before the comparison: directories, ids, hashes, ports and times are replaced, counts and amounts aren't.
// Texts depend on the operating system, so they are compared only on Linux.
package prosetest

import (
	"errors"
	"fmt"
	"runtime"
	"strings"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/hints"
)

// T is the part of testing.TB that this package needs.
type T interface {
	Helper()
	Name() string
	Cleanup(func())
	Fatalf(format string, args ...any)
}

// Text records a text of the program: a string, bytes, an error, or a list of strings. It is stored under the
// name of the test, with a number if there are several. label distinguishes texts without a fixed order, or
// explains why the text matters.
func Text(t T, text any, label ...any) {
	t.Helper()
	record(t, plain(text), label)
}

// Error records an error, its code and its hints. Each value in want must match: a [protocol.Code] is the
// error's code, an error matches by [errors.Is]. Anything else is the label, see [Text].
func Error(t T, err error, want ...any) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error")
		return
	}
	var coded *protocol.Error
	has := errors.As(err, &coded)
	var label []any
	for _, w := range want {
		switch w := w.(type) {
		case nil:
		case protocol.Code:
			if !has || coded.Code != w {
				t.Fatalf("the code of %T is not %q: %v", err, w, err)
			}
		case error:
			if !errors.Is(err, w) {
				t.Fatalf("%T is not %v: %v", err, w, err)
			}
		default:
			label = append(label, w)
		}
	}
	text := err.Error()
	if has {
		text = "[" + string(coded.Code) + "] " + text
		for _, hint := range hints.All("", coded) {
			text += "\nhint: " + hint
		}
	}
	record(t, text, label)
}

// plain formats a value as text.
func plain(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case []byte:
		return string(v)
	case []string:
		return strings.Join(v, "\n")
	case *protocol.Error:
		return strings.Join(append([]string{v.Message}, hints.All("", v)...), "\nhint: ")
	case error:
		return v.Error()
	}
	return fmt.Sprintf("%+v", v)
}

// labelOf formats a label, which can be a format with arguments.
func labelOf(label []any) string {
	if len(label) > 1 {
		if format, ok := label[0].(string); ok {
			return fmt.Sprintf(format, label[1:]...)
		}
	}
	return fmt.Sprint(label...)
}

// record adds a text to those of the test binary.
func record(t T, text string, label []any) {
	t.Helper()
	c := current
	if c == nil && runtime.GOOS != "linux" {
		return // a TestMain can be specific to one system
	}
	if c == nil {
		t.Fatalf("TestMain of this package must call prosetest.Run")
		return
	}
	if c.record(t.Name(), labelOf(label), text) > 1 {
		return
	}
	t.Cleanup(func() {
		o, ok := t.(interface{ Failed() bool })
		c.done(t.Name(), ok && o.Failed())
	})
}
