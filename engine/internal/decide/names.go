package decide

import (
	"fmt"
	"reflect"
	"strings"
)

// Names of values, for logs and diagnostics.

func (x Barrier) String() string {
	return name(x,
		"open", "leased", "unreadable", "no cwd", "untrusted")
}

func (x Owner) String() string {
	return name(x,
		"waits", "parent open", "parent moved")
}

func (x Life) String() string {
	return name(x,
		"active", "completed", "failed", "cancelled")
}

func (x Intent) String() string {
	return name(x,
		"no intent", "moving", "prepared", "settled")
}

func (x Run) String() string {
	return name(x,
		"no run", "ended", "errored", "exhausted", "in flight")
}

func (x Asked) String() string {
	return name(x,
		"by graph", "by words", "by poke", "by answer", "by join")
}

func (x Result) String() string {
	return name(x,
		"no result", "ready", "unfit")
}

func (x Account) String() string {
	return name(x,
		"free", "limited")
}

func (x Next) String() string {
	return name(x,
		"go", "asks", "step limit", "cost limit", "at end", "stuck")
}

func (x Player) String() string {
	return name(x,
		"by agent", "by command", "by person", "by children", "nobody")
}

func (x Children) String() string {
	return name(x,
		"no children", "missing", "doubtful", "working", "awaiting", "asking", "all ended")
}

func (x Verb) String() string {
	return name(x,
		"step", "run due", "resume", "poke", "answer", "undo", "redo", "retry", "stop", "kill", "fork")
}

func (x Kind) String() string {
	return name(x,
		"", "refuse", "report", "run agent", "run command", "run with words", "replace", "adopt",
		"reject", "close", "discard result", "record answer", "record failure", "create children",
		"drive children", "hand to child", "raise attempt", "join", "archive", "cancel", "move", "finish",
		"take back", "leave files", "queue", "unpark", "stop agent", "fork")
}

func name[T ~uint8](x T, names ...string) string {
	if int(x) < len(names) {
		return names[x]
	}
	return fmt.Sprintf("unknown (%d)", uint8(x))
}

// String lists the facts that differ from the zero value.
func (f Facts) String() string { return format(f) }

// String returns the verb and the options.
func (r Request) String() string { return strings.TrimPrefix(format(r), "verb: ") }

// format lists the nonzero fields of a struct, and always its first one.
func format(facts any) string {
	v := reflect.ValueOf(facts)
	var said []string
	for i := range v.NumField() {
		field, word := v.Field(i), strings.ToLower(v.Type().Field(i).Name)
		switch {
		case field.Kind() == reflect.Bool && field.Bool():
			said = append(said, word)
		case field.Kind() != reflect.Bool && (i == 0 || !field.IsZero()):
			said = append(said, fmt.Sprintf("%s: %s", word, field.Interface()))
		}
	}
	return strings.Join(said, ", ")
}
