package decide

import (
	"fmt"
	"reflect"
	"strings"
)

// names returns the names of the values of each type, for logs and diagnostics.
func names() map[string]string {
	return map[string]string{
		"Barrier":  "open, leased, unreadable, no cwd, untrusted",
		"Owner":    "waits, parent open, parent moved",
		"Life":     "active, completed, failed, cancelled",
		"Intent":   "no intent, moving, prepared, settled",
		"Run":      "no run, ended, errored, exhausted, in flight",
		"Asked":    "by graph, by words, by poke, by answer, by join",
		"Result":   "no result, ready, unfit",
		"Account":  "free, limited",
		"Next":     "go, asks, step limit, cost limit, at end, stuck",
		"Player":   "by agent, by command, by person, by children, nobody",
		"Children": "no children, missing, doubtful, working, awaiting, asking, all ended",
		"Verb":     "step, run due, resume, poke, answer, undo, redo, retry, stop, kill, fork",
		"Kind": ", refuse, report, run agent, run command, run with words, replace, adopt, reject, close, discard result, " +
			"record answer, record failure, create children, drive children, hand to child, raise attempt, join, archive, " +
			"cancel, move, finish, take back, leave files, queue, unpark, stop agent, fork",
	}
}

func name(v reflect.Value) string {
	if of := strings.Split(names()[v.Type().Name()], ", "); v.Uint() < uint64(len(of)) {
		return of[v.Uint()]
	}
	return fmt.Sprintf("unknown (%d)", v.Uint())
}

// String returns the name of a kind.
func (x Kind) String() string { return name(reflect.ValueOf(x)) }

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
			said = append(said, word+": "+name(field))
		}
	}
	return strings.Join(said, ", ")
}
