package postgres

import (
	"database/sql"
	"encoding/binary"
	"fmt"
	"sync"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

// The schema has four types, and their binary forms are plain: here they need no
// reflection.

// scratch is where the arguments of one statement are encoded.
type scratch struct {
	buf    []byte
	values [][]byte
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// encode makes the binary values of a statement's arguments. They are valid until
// the next call.
func (s *scratch) encode(sd *pgconn.StatementDescription, args []any) ([][]byte, error) {
	if len(args) != len(sd.ParamOIDs) {
		return nil, fmt.Errorf("%d arguments for %d placeholders", len(args), len(sd.ParamOIDs))
	}
	values := s.values[:0]
	buf := append(s.buf[:0], 0)[:0] // never nil: an empty value is no NULL
	for i, arg := range args {
		from := len(buf)
		var null bool
		var err error
		if buf, null, err = appendValue(buf, sd.ParamOIDs[i], arg); err != nil {
			return nil, fmt.Errorf("argument %d: %w", i+1, err)
		}
		if null {
			values = append(values, nil)
			continue
		}
		values = append(values, buf[from:len(buf):len(buf)])
	}
	s.buf, s.values = buf, values
	return values, nil
}

// appendValue appends one argument in the form of its parameter's type.
func appendValue(buf []byte, oid uint32, arg any) (out []byte, null bool, err error) {
	switch v := arg.(type) {
	case nil:
		return buf, true, nil
	case string:
		return append(buf, v...), false, nil
	case []byte:
		return append(buf, v...), v == nil, nil
	case int64:
		buf, err = appendInt(buf, oid, v)
		return buf, false, err
	case int:
		buf, err = appendInt(buf, oid, int64(v))
		return buf, false, err
	case []string:
		return array(buf, oid, v)
	case [][]byte:
		return array(buf, oid, v)
	}
	return buf, false, fmt.Errorf("%T has no binary form here", arg)
}

func appendInt(buf []byte, oid uint32, n int64) ([]byte, error) {
	switch oid {
	case pgtype.Int8OID:
		return binary.BigEndian.AppendUint64(buf, uint64(n)), nil
	case pgtype.Int2OID:
		if int64(int16(n)) != n {
			return buf, fmt.Errorf("%d is out of range", n)
		}
		return binary.BigEndian.AppendUint16(buf, uint16(n)), nil
	}
	return buf, fmt.Errorf("an integer where type %d is wanted", oid)
}

// elements are the types of the arrays that are sent.
var elements = map[uint32]uint32{
	pgtype.TextArrayOID: pgtype.TextOID, pgtype.ByteaArrayOID: pgtype.ByteaOID,
}

// array appends a one-dimensional array: dimensions, no NULLs, type, length, lower
// bound, and each element after its length.
func array[T ~string | ~[]byte](buf []byte, oid uint32, values []T) ([]byte, bool, error) {
	of, ok := elements[oid]
	if !ok {
		return buf, false, fmt.Errorf("an array where type %d is wanted", oid)
	}
	for _, n := range [...]uint32{1, 0, of, uint32(len(values)), 1} {
		buf = binary.BigEndian.AppendUint32(buf, n)
	}
	for _, v := range values {
		buf = binary.BigEndian.AppendUint32(buf, uint32(len(v)))
		buf = append(buf, v...)
	}
	return buf, false, nil
}

// decode reads a binary value. It does not keep value.
func decode(dest any, oid uint32, value []byte) error {
	var src any
	switch {
	case value == nil:
	case oid == pgtype.Int8OID && len(value) == 8:
		src = int64(binary.BigEndian.Uint64(value))
	case oid == pgtype.Int2OID && len(value) == 2:
		src = int64(int16(binary.BigEndian.Uint16(value)))
	case oid == pgtype.Int4OID && len(value) == 4:
		src = int64(int32(binary.BigEndian.Uint32(value)))
	case oid == pgtype.TextOID || oid == pgtype.ByteaOID:
		src = value
	default:
		return fmt.Errorf("type %d with %d bytes is not read here", oid, len(value))
	}
	switch d := dest.(type) {
	case sql.Scanner:
		return d.Scan(src)
	case *int64:
		n, ok := src.(int64)
		*d = n
		if !ok {
			return fmt.Errorf("%T is no integer", src)
		}
		return nil
	}
	return fmt.Errorf("nothing is read into %T", dest)
}
