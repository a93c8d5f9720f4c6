/* A library that clients name as needed and use nothing of. */
typedef int npu_sim_nothing;
