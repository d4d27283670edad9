package jsonata

// Object is a JSON object whose members have an order. As part of an input it
// is visited in that order; a map is visited in the order of its keys. The zero
// value is empty.
type Object struct {
	keys   []string
	values map[string]any
}

// Set adds a member, or replaces the value of one.
func (o *Object) Set(key string, value any) {
	if o.values == nil {
		o.values = map[string]any{}
	}
	if _, ok := o.values[key]; !ok {
		o.keys = append(o.keys, key)
	}
	o.values[key] = value
}

// Get finds a member.
func (o *Object) Get(key string) (value any, ok bool) {
	value, ok = o.values[key]
	return value, ok
}

// Keys are the keys in order. The slice is the object's own.
func (o *Object) Keys() []string { return o.keys }

// Len is the number of members.
func (o *Object) Len() int { return len(o.keys) }
