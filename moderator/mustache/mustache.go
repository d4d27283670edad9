// Package mustache renders the templates of edges.
//
// It knows variables ({{x}}, {{{x}}} and {{&x}}, all alike: nothing is escaped,
// because prompts are not HTML), sections, inverted sections, comments and set
// delimiters. It has no partials and no lambdas: a template reads nothing but
// the values that it is given, and what it renders is never read again as a
// template.
//
// It is strict where mustache is lenient: a variable that does not exist is an
// error, because an agent that gets a prompt with a hole in it invents what is
// missing. A section over a name that does not exist is left out, so sections
// are the way to use what may be absent. A value that is null exists, and
// prints as nothing.
//
// Values are JSON values and print as JavaScript prints them: 1e+21, arrays
// joined by commas; only objects print as JSON instead of [object Object].
package mustache

// Bounds of a template and of what it may render. They are far above every
// honest prompt, and low enough that a template cannot eat the machine.
const (
	maxTags     = 10_000
	maxSections = 64      // nested sections
	maxOutput   = 8 << 20 // bytes rendered
	maxWork     = 4 << 20 // pieces rendered: sections may nest without printing
	maxValue    = 256     // depth of a printed value
)

// Template is a parsed template. It is immutable.
type Template struct {
	nodes []node
	tags  []Tag
}

// Kind is what a tag does.
type Kind string

// The kinds of tag that name something.
const (
	Variable Kind = "variable"
	Section  Kind = "section"
	Inverted Kind = "inverted section"
)

// Tag is a tag that names a value: what a checker needs to know of a template.
type Tag struct {
	Kind Kind
	Name string   // as written: "a.b", or "." for the value of the section
	Path []string // Name split at the dots; nil for "."
	// Within are the names of the sections around the tag, outermost first. In
	// there a name may also be found in the section's value. Inverted sections
	// are left out: they have no value.
	Within []string
	Line   int    // in the template, from 1
	Column int    // from 1, in characters
	Source string // with its delimiters
}

// node is a piece of a template: literal text if tag is nil, else a tag with
// the pieces between it and its closing tag.
type node struct {
	text string
	tag  *Tag
	body []node
}

// Parse reads a template. Every error is a *[SyntaxError].
func Parse(src string) (*Template, error) {
	tokens, err := scan(src)
	if err != nil {
		return nil, err
	}
	return build(stripStandalone(tokens))
}

// Tags lists the tags that name a value, in the order written.
func (t *Template) Tags() []Tag { return t.tags }
