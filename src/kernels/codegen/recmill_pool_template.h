/* SPDX-License-Identifier: Apache-2.0 */
/* A way of your own to pool a feature's bags: one file that includes this header and no other of
 * Recmill, and defines recmill_pool_template(). [kernels] templates names the file; Recmill
 * compiles it, compares its answers with the reference before it is timed, and takes it where it is
 * fastest. docs/ADDING.md has an example. */
#ifndef RECMILL_POOL_TEMPLATE_H_
#define RECMILL_POOL_TEMPLATE_H_

#include <stdint.h>

#define RECMILL_POOL_TEMPLATE_VERSION 2

#ifdef __cplusplus
extern "C" {
#endif

enum { RECMILL_FLOAT32 = 0, RECMILL_BFLOAT16 = 1, RECMILL_FLOAT16 = 2 }; /* precisions */
enum { RECMILL_SUM = 0, RECMILL_MEAN = 1, RECMILL_NONE = 2 };            /* poolings */

/* Lookups whose sum is folded before it joins the bag's total: part of the order of summation. */
enum { RECMILL_POOL_RUN = 64 };

/* What a schedule is chosen by: a feature's table and how its bags are. */
typedef struct RecmillPoolShape {
  int64_t rows, dim;
  int32_t precision, pooling;
  int32_t weighted;
  int32_t one_each;    /* every bag had exactly one lookup */
  double mean_lookups; /* of a sample, empty bags counted */
  double deviation;
  double empty_share; /* samples without a lookup */
  int64_t longest;    /* lookups of a sample */
  int64_t l2_bytes;   /* of a core's own cache that a schedule may count on */
} RecmillPoolShape;

/* Samples [first, last) of one feature in one batch. The batch may be any: bags may be empty, or
 * longer than they were when the schedule was chosen. */
typedef struct RecmillPoolPiece {
  int64_t first, last;
  const int64_t*
      offsets; /* bag i is lookups [offsets[i], offsets[i + 1]); the first need not be 0 */
  const int64_t* lookups; /* numbers of rows */
  const float* weights;   /* beside lookups, or null: all 1 */
  const char* rows;       /* row r: dim weights at rows + r * row_bytes */
  int64_t row_count, row_bytes, dim;
  float* out; /* pooled: sample i at out + i * out_stride, dim floats; RECMILL_NONE: lookup */
  int64_t out_stride; /* j at out + (j - offsets[0]) * out_stride */
  int32_t precision, pooling;
  int32_t one_each; /* every bag has exactly one lookup */
  int32_t staging;  /* this thread's first piece of the feature, whose pieces' lookups ask for as
                       many cache lines as the rows have: reading them in order first may pay */
} RecmillPoolPiece;

typedef struct RecmillTunable {
  const char* name; /* lower case and underscores, as the template's */
  const char* meaning;
  const int64_t* values; /* worth trying */
  int64_t count;
} RecmillTunable;

typedef struct RecmillPoolTemplate {
  int64_t version; /* RECMILL_POOL_TEMPLATE_VERSION */
  const char* name;
  const char* meaning;
  int32_t reorders;      /* its sums are not in the one order: no candidate where deterministic */
  int32_t one_each_only; /* right for bags of exactly one lookup alone */
  const RecmillTunable* tunables;
  int64_t tunable_count;
  /* Whether these values, in the order of `tunables`, are right for such features. */
  int32_t (*valid)(const RecmillPoolShape* shape, const int64_t* values);
  /* Bytes that a running piece needs besides; null: none. A piece's bags may be any, so that what
   * the shape says of bags, from one_each to longest, is 0 here, and l2_bytes too. */
  int64_t (*scratch_bytes)(const RecmillPoolShape* shape, const int64_t* values);
  /* Writes what the reference would, and nothing else. `scratch` is aligned to 64. Runs on several
   * threads at once. */
  void (*pool)(const RecmillPoolPiece* piece, const int64_t* values, void* scratch);
} RecmillPoolTemplate;

/* What the file defines. */
const RecmillPoolTemplate* recmill_pool_template(void);

#ifdef __cplusplus
}
#endif

#endif /* RECMILL_POOL_TEMPLATE_H_ */
