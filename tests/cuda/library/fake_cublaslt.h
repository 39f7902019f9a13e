// A fake cuBLASLt: a shared library of that name whose products answer as a test chooses. A test
// finds the control by its name, `fake_cublaslt_control`, in the opened library.

#ifndef GPUSHARE_TESTS_CUDA_LIBRARY_FAKE_CUBLASLT_H_
#define GPUSHARE_TESTS_CUDA_LIBRARY_FAKE_CUBLASLT_H_

namespace gpushare::cuda {

struct FakeCublasLtControl {
  int algorithms = 4;  // how many the heuristic returns
  int answer = 0;      // cublasStatus_t of a product by an algorithm before `first_good`
  int first_good = 0;
  int products = 0;         // calls since the test reset it
  int first_algorithm = 0;  // algorithm of the first of them
  // Handles of the last call of the heuristic and of the last product.
  const void* plan_handle = nullptr;
  const void* product_handle = nullptr;
};

}  // namespace gpushare::cuda

#endif  // GPUSHARE_TESTS_CUDA_LIBRARY_FAKE_CUBLASLT_H_
