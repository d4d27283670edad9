package protocol

import (
	"fmt"
	"slices"
	"time"
)

// Limits are the limits of a run; zero means that the limit is not set. [AllLimits] lists the fields.
type Limits struct {
	MaxSteps         int `json:"maxSteps,omitempty"`
	MaxVisitsPerRole int `json:"maxVisitsPerRole,omitempty"`

	// Version 2.
	MaxCostUSD float64 `json:"maxCostUsd,omitempty"`
	MaxTokens  int64   `json:"maxTokens,omitempty"`
	MaxTimeMs  int64   `json:"maxTimeMs,omitempty"`
}

// LimitsConfig holds the default limits in config.yaml, for workflows that don't set their own. Zero means
// the built-in default.
type LimitsConfig struct {
	MaxSteps         int     `json:"maxSteps,omitempty"`
	MaxVisitsPerRole int     `json:"maxVisitsPerRole,omitempty"`
	MaxCostUSD       float64 `json:"maxCostUsd,omitempty"`        // per run; 0 means unlimited
	MaxTokens        int64   `json:"maxTokens,omitempty"`         // input and output, per run; 0 means unlimited
	MaxTime          string  `json:"maxTime,omitempty" is:"span"` // of all steps of a run, such as "2h"; "" means unlimited

	PerDay *DayLimits `json:"perDay,omitempty"` // for the whole home, independent of workflows; nil means none
}

// DayLimits limits the cost of all agents of a home until midnight; zero means unlimited.
type DayLimits struct {
	CostUSD float64 `json:"costUsd,omitempty"`
	Tokens  int64   `json:"tokens,omitempty"`
}

// DefaultMaxSteps is the step limit of a run if neither workflow nor config sets one.
const DefaultMaxSteps = 100

// Limit describes one field of [Limits]. Code that reads, stores, merges, compares and displays limits
// iterates over [AllLimits]. Package moderator implements their meaning.
type Limit struct {
	Key     string // key in workflow files and in config.yaml
	Stored  string // key in the node of a workflow
	Unit    Unit
	Of      string // counted unit, in a list of amounts
	Help    string // counted unit, on its own
	Version int    // first workflow node version that contains it
	field   func(*Limits) any
}

// Unit is the unit of a limit.
type Unit int

// Units of limits.
const (
	UnitCount Unit = iota
	UnitTokens
	UnitDollars
	UnitMs
)

// AllLimits lists the limits in display order.
func AllLimits() []Limit {
	return []Limit{
		{"maxSteps", "maxSteps", UnitCount, "steps", "Steps of a thread", 1,
			func(l *Limits) any { return &l.MaxSteps }},
		{"maxVisitsPerRole", "maxVisitsPerRole", UnitCount, "steps of a role", "Steps of each role", 1,
			func(l *Limits) any { return &l.MaxVisitsPerRole }},
		{"maxCostUsd", "maxCostUsd", UnitDollars, "in all", "US dollars that a whole run may cost", 2,
			func(l *Limits) any { return &l.MaxCostUSD }},
		{"maxTokens", "maxTokens", UnitTokens, "tokens in all", "Tokens that a whole run may read and write", 2,
			func(l *Limits) any { return &l.MaxTokens }},
		{"maxTime", "maxTimeMs", UnitMs, "of work in all", "Time that all steps of a run may take, such as 2h", 2,
			func(l *Limits) any { return &l.MaxTimeMs }},
	}
}

// Get returns the limit's value: an int64, or a float64 of dollars.
func (x Limit) Get(l Limits) any {
	switch p := x.field(&l).(type) {
	case *int:
		return int64(*p)
	case *int64:
		return *p
	case *float64:
		return *p
	}
	panic(fmt.Sprintf("protocol: limit %s has no number", x.Key))
}

// Number returns the limit's value as a float64, which represents it exactly.
func (x Limit) Number(l Limits) float64 {
	if n, ok := x.Get(l).(int64); ok {
		return float64(n)
	}
	return x.Get(l).(float64)
}

// Set sets the limit's value.
func (x Limit) Set(l *Limits, n float64) {
	switch p := x.field(l).(type) {
	case *int:
		*p = int(n)
	case *int64:
		*p = int64(n)
	case *float64:
		*p = n
	}
}

// Or returns l with unset limits taken from defaults.
func (l Limits) Or(defaults Limits) Limits {
	for _, x := range AllLimits() {
		if x.Number(l) == 0 {
			x.Set(&l, x.Number(defaults))
		}
	}
	return l
}

// Complete reports whether all limits are set.
func (l Limits) Complete() bool {
	for _, x := range AllLimits() {
		if x.Number(l) == 0 {
			return false
		}
	}
	return true
}

// Negative reports whether a limit is negative or NaN.
func (l Limits) Negative() bool {
	return slices.ContainsFunc(AllLimits(), func(x Limit) bool { return !(x.Number(l) >= 0) })
}

// Narrower returns the smaller of each pair of limits.
func (l Limits) Narrower(m Limits) Limits {
	for _, x := range AllLimits() {
		if n := x.Number(m); n > 0 && (x.Number(l) == 0 || n < x.Number(l)) {
			x.Set(&l, n)
		}
	}
	return l
}

// version returns the workflow node version that the limits require.
func (l Limits) version() int {
	version := 1
	for _, x := range AllLimits() {
		if x.Number(l) != 0 {
			version = max(version, x.Version)
		}
	}
	return version
}

// Limits converts c to the form used in workflows. An unreadable time is an error with the code invalid.
func (c LimitsConfig) Limits() (Limits, error) {
	l := Limits{MaxSteps: c.MaxSteps, MaxVisitsPerRole: c.MaxVisitsPerRole, MaxCostUSD: c.MaxCostUSD,
		MaxTokens: c.MaxTokens}
	if c.MaxTime == "" {
		return l, nil
	}
	t, err := time.ParseDuration(c.MaxTime)
	if err != nil || t < 0 {
		return l, &Error{Code: CodeInvalid, Message: fmt.Sprintf("limits.maxTime must be a duration such as 30m "+
			"or 2h, got %q",
			c.MaxTime)}
	}
	l.MaxTimeMs = t.Milliseconds()
	return l, nil
}

// Config converts l to the form used in config.yaml.
func (l Limits) Config() LimitsConfig {
	c := LimitsConfig{MaxSteps: l.MaxSteps, MaxVisitsPerRole: l.MaxVisitsPerRole, MaxCostUSD: l.MaxCostUSD,
		MaxTokens: l.MaxTokens}
	if l.MaxTimeMs > 0 {
		c.MaxTime = Span(time.Duration(l.MaxTimeMs) * time.Millisecond)
	}
	return c
}
