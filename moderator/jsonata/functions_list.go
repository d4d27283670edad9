package jsonata

func (c *call) count() (any, error) {
	if c.missing(0) {
		return 0.0, nil
	}
	l := asList(c.args[0])
	return float64(l.len()), nil
}

func (c *call) append() (any, error) {
	switch {
	case c.missing(0):
		return c.args[1], nil
	case c.missing(1):
		return c.args[0], nil
	}
	out := &list{vals: []any{}}
	if err := c.concat(out, asList(c.args[0])); err != nil {
		return nil, err
	}
	return out, c.concat(out, asList(c.args[1]))
}

func (c *call) reverse() (any, error) {
	l := asList(c.args[0])
	if l.len() <= 1 {
		return c.args[0], nil
	}
	if err := c.grow(l.len()); err != nil {
		return nil, err
	}
	out := make([]any, l.len())
	for i := range out {
		out[i] = l.item(l.len() - 1 - i)
	}
	return &list{vals: out}, c.spend(l.len())
}

// distinct keeps the first of equal items.
func (c *call) distinct() (any, error) {
	l, ok := listOf(c.args[0])
	if !ok || l.len() <= 1 {
		return c.args[0], nil
	}
	out := &list{vals: []any{}, seq: l.seq}
	seen := map[string]bool{}
	for i := range l.len() {
		item := l.item(i)
		if err := c.spend(stepsPerKey); err != nil {
			return nil, err
		}
		key, err := c.json(item, "", true)
		if err != nil {
			return nil, err
		}
		if seen[string(key)] {
			continue
		}
		seen[string(key)] = true
		if err := c.push(out, item); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// zip makes an array of the first items of its arguments, one of the second,
// and so on, as long as all have one.
func (c *call) zip() (any, error) {
	length := 0
	for i, arg := range c.args {
		n := 0
		if l, ok := listOf(arg); ok {
			n = l.len()
		}
		if i == 0 || n < length {
			length = n
		}
	}
	if err := c.grow(length * (len(c.args) + 1)); err != nil {
		return nil, err
	}
	if err := c.spend(length * len(c.args)); err != nil {
		return nil, err
	}
	out := &list{vals: make([]any, length)}
	for i := range length {
		tuple := make([]any, len(c.args))
		for j, arg := range c.args {
			tuple[j] = asList(arg).item(i)
		}
		out.vals[i] = &list{vals: tuple}
	}
	return out, nil
}
